package experiment

import (
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

// This file has the hazards that are a plan. A is the holder, B the contender, and D a request in the process of A. They are
// in the order in which a class meets them.

func race() Experiment {
	return Experiment{
		Hazard: "race", Group: faultless, Basic: true, Applies: always,
		Plans: []string{"A sells at read, D sells for 0.5 s, D ends, A resumes"},
		Title: api.Text{EN: "two requests in one process", ZH: "同一进程里的两个请求"},
		Shows: api.Text{EN: "a lost update: 2 sold, 1 taken from stock", ZH: "卖出两件，库存只减少一件"},
	}
}

func replicaRace() Experiment {
	return Experiment{
		Hazard: "replica-race", Group: faultless, Basic: true, Applies: always,
		Plans: []string{"A sells at read, B sells for 0.5 s, B ends, A resumes"},
		Title: api.Text{EN: "two requests on two replicas", ZH: "两个副本上的两个请求"},
		Shows: api.Text{EN: "correct on one replica, broken on two", ZH: "一个副本时正确，两个副本时出错"},
	}
}

// earlyRelease pauses the holder between the release of its lock and its commit, until the
// contender (the second request) has read the stock.
func earlyRelease() Experiment {
	return Experiment{
		Hazard: "early-release", Group: faultless, Applies: always,
		Plans: []string{"A sells at released, D sells for 5 s, A resumes"},
		Title: api.Text{EN: "unlock before commit", ZH: "先解锁，后提交"},
		Shows: api.Text{EN: "a lost update in spite of the lock", ZH: "加了锁，仍然超卖"},
	}
}

func nesting() Experiment {
	waited := stalled(api.Text{EN: "The holder waited for its own lock.", ZH: "持锁者在等待自己的锁。"})
	return Experiment{
		Hazard: "nesting", Group: faultless, Applies: lockers,
		Plans: []string{"A sells nested for 0.5 leases, A ends, B sells, B ends"},
		Title: api.Text{EN: "the holder acquires its lock again", ZH: "持锁者再次加锁"},
		Shows: api.Text{EN: "a holder that waits for itself", ZH: "自己等待自己"},
		rule:  mustSell(waited, holder),
	}
}

func overrun() Experiment {
	expired := &finding{api.Aborted, "", api.Text{
		EN: "The lease expired before the work finished, and the holder did not write.",
		ZH: "工作完成之前租期已过，持锁者没有写入。",
	}}
	return Experiment{
		Hazard: "overrun", Group: holderFails, Basic: true, Applies: lockers,
		Plans: []string{"A sells working 2 leases at read, A resumes, B sells, B ends"},
		Title: api.Text{EN: "work longer than the lease", ZH: "工作时间比租期长"},
		Shows: api.Text{EN: "the lease expires while the holder works", ZH: "持锁者还在工作，租期已到"},
		lapse: api.Text{EN: "The holder's lease expired during its work, and it wrote anyway.", ZH: "工作期间租期已过，持锁者仍然写入。"},
		rule:  mustSell(expired, holder),
	}
}

// crash kills the holder. The seed chooses how often the holder has renewed its lease before: a renewal may give a longer
// lease than the grant, or add a lease to the rest. Without renewals, no time passes: the lock would have expired.
func crash() Experiment {
	return Experiment{
		Hazard: "crash", Group: holderFails, Basic: true, Applies: always,
		Plans: []string{
			"A sells at granted, 0.5 leases pass if renewed, A dies, B sells, B ends",
			"A sells at granted, 3.5 leases pass if renewed, A dies, B sells, B ends",
			"A sells at granted, 1.5 leases pass if renewed, A dies, B sells, B ends",
		},
		Title: api.Text{EN: "the holder's process is killed", ZH: "持锁者的进程被杀死"},
		Shows: api.Text{EN: "how long the others wait for the lock of a dead holder", ZH: "其他请求要等多久才能拿到锁"},
		rule: freedInTime(api.Textf(
			"No request acquired the lock within %v after the holder was killed.", "持锁者被杀死后 %v 内没有请求拿到锁。", player.GrantBound)),
	}
}

// hostDeath silences all links of the holder's replica, and kills its process. Unlike after crash, no server receives the
// end of a connection, so a lock that belongs to a connection stays held until the server's own time-outs.
func hostDeath() Experiment {
	return Experiment{
		Hazard: "host-death", ClaimedAs: "crash", Group: linkFails, Applies: always,
		Plans: []string{"A sells at granted, A loses power, B sells, B ends"},
		Title: api.Text{EN: "the holder's machine loses its power, or its network", ZH: "持锁者的主机掉电或断网"},
		Shows: api.Text{EN: "its connections stay open at the servers; is a lock of a connection freed?", ZH: "它的连接在服务器上仍然打开，属于连接的锁会释放吗？"},
		rule: freedInTime(api.Textf(
			"The holder's machine died, and its connections stayed open: no request acquired the lock within %v.",
			"持锁者的机器掉电，它的连接仍然打开：%v 内没有请求拿到锁。", player.GrantBound)),
	}
}

// freedInTime returns a rule: after the death of the holder, the contender must get its lock in time.
func freedInTime(late api.Text) rule {
	return func(p *played) *finding {
		if p.Stopped == "" { // the holder had sold before it died, and held no lock
			return neverStopped(p)
		}
		return mustSellInTime(stalled(late))(p)
	}
}

// pause freezes the holder's process after its last check of the lock, until its lease has ended.
func pause() Experiment {
	return Experiment{
		Hazard: "pause", Group: holderFails, Basic: true, Applies: always, Fenced: true,
		Plans: []string{"A sells at writing, A freezes, B sells, 1 lease passes, B ends, A thaws, A resumes"},
		Title: api.Text{EN: "the holder pauses past the end of its lease, then writes", ZH: "持锁者停顿超过租期后继续写入"},
		Shows: api.Text{EN: "two holders, and the late write wins", ZH: "两个持锁者，迟到的写入覆盖了别人的写入"},
		lapse: pauseLapse(),
	}
}

// pauseLapse says what happened when a holder wrote after a pause beyond its lease.
func pauseLapse() api.Text {
	return api.Text{EN: "The holder's lease expired during the pause, and it wrote anyway.", ZH: "停顿期间租期已过，持锁者醒来仍然写入。"}
}

// pauseAtRead puts the holder's late write between the contender's read and write. If a fencing
// token is not registered in the row before the read, the row accepts both writes.
func pauseAtRead() Experiment {
	return Experiment{
		Hazard: "pause-at-read", ClaimedAs: "pause", Group: holderFails, Applies: always, Fenced: true,
		Plans: []string{"A sells at writing, A freezes, B sells at read, 1 lease passes, B stops, A thaws, A resumes, A ends, B resumes"},
		Title: api.Text{
			EN: "the holder pauses past the end of its lease, and writes between the contender's read and write",
			ZH: "持锁者停顿超过租期，恢复时另一个请求已读取、尚未写入",
		},
		Shows: api.Text{
			EN: "the contender overwrites the late write, and both have sold the same piece",
			ZH: "迟到的写入又被覆盖，同一件卖了两次",
		},
		lapse: pauseLapse(),
	}
}

// starved freezes the holder while it works, until another request has sold (samcook/RedLock.net#48,
// redis/rueidis#923: a renewal that runs late). Its renewal then finds no lock, and must not acquire
// it again. Unlike in pause, the holder can still check its lock before it writes.
func starved() Experiment {
	return Experiment{
		Hazard: "starved", Group: reported, Applies: func(c api.Card) bool { return c.Locker && c.Lease }, Fenced: true,
		Plans: []string{"A sells working 0.5 leases at read, A freezes, B sells, B ends, A thaws, A resumes"},
		Title: api.Text{
			EN: "the holder's process gets no processor until its lease has ended, then works on",
			ZH: "持锁者的进程一直分不到 CPU，租期结束后才继续工作",
		},
		Shows: api.Text{EN: "does a late renewal, or the clock, stop its write?", ZH: "迟到的续期或时钟能阻止它写入吗？"},
		lapse: pauseLapse(),
	}
}

// foreignUnlock lets a request release its lock late. Both replicas are restarted first, so they give the same thread
// numbers.
func foreignUnlock() Experiment {
	return Experiment{
		Hazard: "foreign-unlock", Group: holderFails, Applies: func(c api.Card) bool { return c.Lease },
		Plans: []string{"A is restarted, B is restarted, A sells at written, A freezes, B sells at read, B stops, A thaws, A resumes, A ends, C sells for 0.5 s, C ends, B resumes"},
		Title: api.Text{EN: "a late release", ZH: "迟到的释放"},
		Shows: api.Text{EN: "the release of a lock that another request holds by then", ZH: "释放了已属于别人的锁"},
		rule:  freedForeignLock,
	}
}

// freedForeignLock checks whether a third request acquired the lock while the contender held it.
func freedForeignLock(p *played) *finding {
	if p.Ops[observer].Outcome == history.OK && p.Ops[contender].Reason == "lost" {
		return &finding{api.Broken, MutualExclusion, api.Text{
			EN: "A third request acquired the lock while the contender held it.",
			ZH: "竞争者持锁时，第三个请求也拿到了锁。",
		}}
	}
	return nil
}

// operator deletes the lock while its holder works. The holder works for another lease, in which a
// renewal can notice the deletion (redisson/redisson#2215: a key deleted by hand).
func operator() Experiment {
	return Experiment{
		Hazard: "operator", Group: reported, Applies: api.Card.InServer, Fenced: true,
		Plans: []string{"A sells at read, locks deleted, B sells, 1 lease passes, B ends, A resumes"},
		Title: api.Text{EN: "an operator deletes the lock while its holder works", ZH: "持锁者工作期间，运维人员删除了它的锁"},
		Shows: api.Text{EN: "does the holder notice before it writes?", ZH: "它在写入之前能发现吗？"},
		lapse: api.Text{EN: "The holder's lock was deleted, and it wrote anyway.", ZH: "持锁者的锁已被删除，它仍然写入。"},
	}
}

// operatorAtWrite deletes the lock after the holder's last check. Its write comes between the
// contender's read and write. Only the server of the stock can reject it.
func operatorAtWrite() Experiment {
	return Experiment{
		Hazard: "operator-at-write", Group: reported, Fenced: true,
		// The end of the sessions that hold locks in MySQL would end the connection of the write, too.
		Applies: func(c api.Card) bool { return c.InServer() && (c.Lease || c.LockService() != "mysql") },
		Plans:   []string{"A sells at writing, locks deleted, B sells at read, B stops, A resumes, A ends, B resumes"},
		Title:   api.Text{EN: "an operator deletes the lock after the holder's last check", ZH: "持锁者最后一次检查之后，运维人员删除了它的锁"},
		Shows:   api.Text{EN: "two holders, and the contender overwrites the holder's write", ZH: "两个持锁者，竞争者覆盖了前一个的写入"},
		lapse:   api.Text{EN: "The holder's lock was deleted, and it wrote anyway.", ZH: "持锁者的锁已被删除，它仍然写入。"},
	}
}

func cutoff() Experiment {
	return Experiment{
		Hazard: "cutoff", Group: linkFails, Basic: true, Fenced: true,
		Applies: func(c api.Card) bool {
			return locksOn("redis", "zookeeper", "etcd", "postgres")(c) || c.OnTrial() && c.Renews && c.LockService() == "mysql"
		},
		Plans: []string{"A sells at read, A is cut off, B sells, B ends, A resumes, A ends, A reconnects"},
		OnRow: "A sells at read, A holds 1, B sells, B ends, A delivers, A resumes",
		Title: api.Text{EN: "the holder is cut off from the lock service", ZH: "持锁者与锁服务断开"},
		Shows: api.Text{EN: "its lease expires; does it still write?", ZH: "租期已到，它还会写入吗？"},
	}
}

// holderReset ends the connections of a holder, as a restarted proxy does. A lock of a connection is lost by that, and a
// session may move to another server of its ensemble. The holder must sell with its lock, or must not write.
func holderReset() Experiment {
	return Experiment{
		Hazard: "holder-reset", Group: reported, Applies: api.Card.InServer,
		Plans: []string{"A sells at read, A disconnects, B sells, 0.3 leases pass, A resumes, B ends"},
		Title: api.Text{EN: "the connections of the holder end while it works", ZH: "持锁者工作期间连接断开"},
		Shows: api.Text{EN: "a lock that ends with its connection; does its holder still write?", ZH: "随连接一起失效的锁；持锁者还会写入吗？"},
	}
}

// sessionExpiry cuts the holder off until its ZooKeeper session or its etcd lease expires.
func sessionExpiry() Experiment {
	return Experiment{
		Hazard: "session-expiry", Group: linkFails, Applies: locksOn("zookeeper", "etcd"), Fenced: true,
		Plans: []string{"A sells at read, A is cut off, B sells, B ends, A resumes, A ends, A reconnects"},
		Title: api.Text{EN: "the holder's session expires", ZH: "持锁者的会话过期"},
		Shows: api.Text{EN: "its nodes are deleted; does the holder notice?", ZH: "它的节点被删除，它能发现吗？"},
	}
}

// partition lets the holder reach two of five Redis, and the contender the other three. Only the
// contender has a majority.
func partition() Experiment {
	return Experiment{
		Hazard: "partition", Group: linkFails, Applies: claimedOrOnTrial("partition", "redlock"),
		Plans: []string{"A sells try at asked, A is cut off from servers 3-5, B is cut off from servers 1-2, A resumes at writing, B sells, B ends, A resumes"},
		Title: api.Text{
			EN: "one replica reaches two of five Redis, another one the other three",
			ZH: "一个副本只连得上五个 Redis 中的两个，另一个副本只连得上其余三个",
		},
		Shows: api.Text{EN: "two holders, if two of five are enough", ZH: "如果两个就够，会有两个持锁者"},
	}
}

// bareMajority lets the holder acquire the lock on redis-1, redis-2 and redis-3 alone. Then redis-1 loses the lock. Only
// two of five Redis reject the contender, so it has a majority, too. The servers redis-4 and redis-5 refuse the holder's
// connections, and are not cut off: some libraries wait for a server that hangs until the lease has ended, and acquire
// nothing.
func bareMajority() Experiment {
	return Experiment{
		Hazard: "bare-majority", Group: linkFails, Applies: claimedOrOnTrial("bare-majority", "redlock"), Fenced: true,
		Plans: []string{"replication stops, A sells for 2 leases at asked, A is refused by servers 4-5, A resumes at writing, A is served, redis fails over, B sells briefly, B ends, A resumes"},
		Title: api.Text{EN: "one of a bare majority of Redis loses its data", ZH: "持锁者只在五个 Redis 中的三个上有锁，其中一个丢失了数据"},
		Shows: api.Text{EN: "another majority grants the lock again, and there are two holders", ZH: "另外三个又组成多数，出现两个持锁者"},
		lapse: api.Text{
			EN: "The holder had the lock on three of five Redis. One of them lost it, and a new majority granted it to the contender.",
			ZH: "持锁者只在五个 Redis 中的三个上有锁。其中一个丢失了锁，竞争者又得到了多数。",
		},
	}
}

// failover promotes a Redis replica that lacks the lock and the counter of fencing tokens. So the
// new master issues the same token again. Only MySQL's row can reject it, because the row keeps the
// highest registered token. C sells from a stock in Redis, and the new master lacks this sale, too.
func failover() Experiment {
	return Experiment{
		Hazard: "failover", Group: serversFail, Basic: true, Fenced: true, Applies: func(c api.Card) bool { return c.Uses("redis") },
		Plans: []string{"replication stops, A sells at writing, writing behind stops, C sells try, C ends, redis fails over, B sells briefly, B ends, A resumes"},
		Title: api.Text{EN: "the Redis master dies before it has replicated the lock", ZH: "主节点在复制锁之前宕机"},
		Shows: keyIsLost(),
		rule:  mustRise,
	}
}

// mustRise checks whether the new master gives fencing tokens that are lower than the token in the row. If so, the row rejects
// all sales until the tokens are higher, which is the finding.
func mustRise(p *played) *finding {
	if !p.Fenced || p.Ops[contender].Reason != string(api.Fenced) {
		return nil
	}
	return stalled(api.Text{
		EN: "After the fail-over, the fences began below those that the row had seen: it rejected the next holder, though no other request held the lock.",
		ZH: "主从切换之后，栅栏号比数据行见过的还小：虽然没有别的请求持锁，数据行仍拒绝了下一个持锁者。",
	})
}

func keyIsLost() api.Text {
	return api.Text{EN: "the key is lost, and there are two holders", ZH: "键丢失，出现两个持锁者"}
}

func minorityLoss() Experiment {
	rejected := stalled(api.Text{
		EN: "Less than half of the nodes were dead, but a request was rejected.",
		ZH: "宕机的节点不到一半，但有请求被拒绝。",
	})
	return Experiment{
		Hazard: "minority-loss", Group: serversFail, Applies: onMajorities,
		Plans: []string{"A sells at asked, a minority dies, A resumes, B sells, B ends"},
		Title: api.Text{
			EN: "2 of 5 Redis and the leaders of 3 ZooKeeper and 3 etcd die",
			ZH: "5 个 Redis 宕机 2 个，3 个 ZooKeeper 与 3 个 etcd 的领导者宕机",
		},
		Shows: api.Text{EN: "sales continue", ZH: "业务照常进行"},
		rule:  mustSell(rejected, holder, contender),
	}
}

// majorityLoss kills more than half of the nodes. No request may acquire the lock afterwards.
func majorityLoss() Experiment {
	return Experiment{
		Hazard: "majority-loss", Group: serversFail, Applies: onMajorities,
		Plans: []string{"A sells at asked, a majority dies, A resumes, B sells for 1 s, B ends"},
		Title: api.Text{
			EN: "3 of 5 Redis, 2 of 3 ZooKeeper and 2 of 3 etcd die",
			ZH: "5 个 Redis 宕机 3 个，3 个 ZooKeeper 宕机 2 个，3 个 etcd 宕机 2 个",
		},
		Shows:    api.Text{EN: "requests are rejected, and no update is lost", ZH: "拒绝服务，但不会超卖"},
		silences: true,
	}
}

func onMajorities(c api.Card) bool {
	return claimedOrOnTrial("minority-loss", "redlock", "zookeeper", "etcd")(c)
}

func clockJump() Experiment {
	return Experiment{
		Hazard: "clock-jump", Group: serversFail, Basic: true, Applies: locksOn("redis", "zookeeper"), Fenced: true,
		Plans: []string{"A sells at writing, all clocks jump, B sells for 5 s, B ends, A resumes"},
		Title: api.Text{EN: "the clocks of all Redis servers jump ahead by an hour", ZH: "所有 Redis 的时钟快进一小时"},
		Shows: api.Text{EN: "keys expire early, and there are two holders", ZH: "键提前过期，出现两个持锁者"},
	}
}

// deadlock lets each of two requests want what the other one has. Either two transactions have read the row in share
// mode, and both write. Or each request names the same two locks, in the opposite order.
func deadlock() Experiment {
	return Experiment{
		Hazard: "deadlock", Group: faultless, Applies: claimed("deadlock"),
		Plans: []string{"A sells a then b for 1 lease at read, B sells b then a for 1 lease, A resumes"},
		Title: api.Text{EN: "two requests want what the other one has", ZH: "两个请求各占一份，又都要对方的那份"},
		Shows: api.Text{
			EN: "both wait: MySQL rolls one of them back (error 1213), locks outside it wait until a time-out",
			ZH: "互相等待：MySQL 回滚其中一个（错误 1213），数据库之外的锁一直等到超时",
		},
		rule: waitForEachOther,
	}
}

func waitForEachOther(p *played) *finding {
	switch n := p.Ops[holder].Retries + p.Ops[contender].Retries; {
	case !p.Card.SeveralLocks && n > 0:
		return &finding{api.Wasteful, "", api.Textf(
			"The two requests waited for each other, and MySQL rolled one of them back. Retries: %d.",
			"两个请求互相等待，MySQL 回滚了其中一个。重试 %d 次。", n)}
	case p.Card.SeveralLocks && p.Stopped == "":
		return &finding{api.Inconclusive, "", api.Text{EN: "The holder never had one lock of several.", ZH: "持锁者没有停在只拿到一把锁的时候。"}}
	case p.Card.SeveralLocks && (p.Ops[holder].Outcome != history.OK || p.Ops[contender].Outcome != history.OK):
		return stalled(api.Textf("Each request had one lock and waited for the other one, until %v had passed.",
			"两个请求各占一把锁，又等对方的那把，直到 %v 之后超时。", player.Lease))
	}
	return nil
}

// deadWaiter kills a waiter, lets the holder go on, and expects that the waiter behind the dead one gets the lock. The
// session of the dead waiter ends meanwhile. A lock is left out if its lease is not renewed and its holder does not
// notice the end: it breaks without a fault.
func deadWaiter() Experiment {
	return Experiment{
		Hazard: "dead-waiter", Group: linkFails, Applies: func(c api.Card) bool { return c.Locker && (!c.Unchecked || c.Renews) },
		Plans: []string{"A sells at read, C sells for 30 s, B sells for 17 s, C dies, 2 leases pass, A resumes, B ends"},
		Title: api.Text{EN: "a waiter in the middle of the queue is killed", ZH: "队列中间的一个等待者宕机"},
		Shows: api.Text{EN: "the waiter behind it enters beside the holder, or waits for ever", ZH: "排在后面的请求与持锁者同时进入临界区，或者一直等下去"},
		rule:  behindTheDead,
	}
}

// behindTheDead checks whether another request acquired the lock before the holder's lease was over, because a waiter
// died. A holder that notices this writes nothing, so no update is lost. It also checks whether the waiter behind the
// dead one got the lock.
func behindTheDead(p *played) *finding {
	granted := slices.IndexFunc(p.Recording.Events, func(e history.Event) bool { return e.Owner == p.Stopped && e.Step == api.Granted })
	if granted >= 0 && p.Ops[holder].Outcome != history.OK {
		if next := nextGrant(p.Recording.Events, p.Stopped, p.Recording.Events[granted].At); next > 0 && next < float64(player.Lease.Milliseconds()) {
			return &finding{api.Broken, MutualExclusion, api.Textf("After the death of a waiter, another request acquired the lock %.3f s after the holder, whose lease was not over.",
				"一个等待者死去之后，另一个请求在持锁者之后 %.3f 秒拿到了锁，而持锁者的租期还没有结束。", next/1000)}
		}
	}
	return mustSell(stalled(api.Textf("A waiter died. The request behind it did not get the lock, though the holder had ended %v before.",
		"一个等待者宕机。持锁者结束之后 %v 内，排在它后面的请求仍然没有拿到锁。", player.GrantBound)), contender)(p)
}

// waiterReset ends the connections of a waiter, and with them its subscription, its watch or its blocking command. Then
// the holder releases the lock. The waiter must learn of that, or must have returned an error before.
func waiterReset() Experiment {
	return Experiment{
		Hazard: "waiter-reset", Group: linkFails, Applies: func(c api.Card) bool {
			return claimedOrOnTrial("waiter-reset", api.LockServices()...)(c) && (!c.Unchecked || c.Renews)
		},
		Plans: []string{"A sells at read, B sells for 23 s, 0.3 leases pass, B disconnects, A resumes, B ends"},
		Title: api.Text{EN: "the connections of a waiter end while it waits", ZH: "等待者的连接在等待期间断开"},
		Shows: api.Text{EN: "a waiter that does not subscribe again sleeps through the release", ZH: "没有重新订阅的等待者错过锁的释放"},
		rule: func(p *played) *finding {
			late := p.Ops[contender].Return - p.Ops[holder].Return
			if late < 0 || p.Ops[contender].Outcome == history.OK && late < p.patience() {
				return nil // also if it has returned an error
			}
			return stalled(api.Textf("The connections of the waiter ended. It still did not have the lock %v after the holder's release.",
				"等待者的连接断开了。持锁者释放锁 %v 之后，它仍然没有拿到锁。", late.Round(time.Second)))
		},
	}
}

// patience returns the longest time from a release to the grant to a waiter.
func (p *played) patience() time.Duration {
	return player.GrantBound + time.Duration(p.Card.PollMS)*time.Millisecond
}

// waiterSession ends the session, or the lease, of a waiter, and with it the place in the queue. The
// waiter must leave, or queue again, before the holder releases the lock (etcd-io/etcd#19597). It must
// not acquire the lock with its old session. Both waiters work: two holders then overlap, even if one is granted later.
func waiterSession() Experiment {
	return Experiment{
		Hazard: "waiter-session", Group: reported, Applies: locksOn("zookeeper", "etcd"),
		Plans: []string{"A sells at read, C sells for 30 s working 0.5 leases, C loses its session, B sells working 0.5 leases, A resumes, B ends, C ends"},
		Title: api.Text{EN: "the session of a waiter expires", ZH: "等待者的会话过期"},
		Shows: api.Text{EN: "does it wait in vain, or acquire the lock beside the next waiter?", ZH: "它白白等待，还是与下一个等待者同时拿到锁？"},
		rule:  judgeWaiter,
	}
}

func judgeWaiter(p *played) *finding {
	waiter := p.Ops[observer]
	noticed := p.Ops[contender].Call // the end of the time in which the waiter can notice its loss
	if waiter.Outcome != history.OK && waiter.Return > noticed {
		return stalled(api.Text{
			EN: "The waiter had lost its place in the queue, waited until the holder's release, and was rejected then.",
			ZH: "等待者在队列中的位置已经丢失，但一直等到持锁者释放之后才被拒绝。",
		})
	}
	late := stalled(api.Textf("The next waiter did not acquire the lock within %v.", "下一个等待者在 %v 内没有拿到锁。", player.GrantBound))
	return mustSell(late, contender)(p)
}

// clientClocks lets the contender's program run with a clock that is ten seconds ahead. A lock whose end is a time of
// its holder's clock has ended for the contender, and fences that are times fall when the holder's program has the lock
// again. Our own strategies are in a Go program, whose clock cannot be set.
func clientClocks() Experiment {
	return Experiment{
		Hazard: "client-clocks", Group: holderFails, Applies: func(c api.Card) bool { return c.OnTrial() && (c.Lease || c.Fenced) },
		Plans: []string{"B runs ahead, A sells at read, B sells for 1 s, B ends, A resumes, A ends, B sells, B ends, A sells, A ends"},
		Title: api.Text{EN: "the clocks of two clients are ten seconds apart", ZH: "两个客户端的时钟相差十秒"},
		Shows: api.Text{EN: "a lock that ends by its client's clock ends too early, and such a fence falls", ZH: "按客户端时钟计算到期的锁提前到期，这样的栅栏号会变小"},
		rule: func(p *played) *finding {
			if p.Ops[contender].Reason != string(api.Unavailable) {
				return nil
			}
			return &finding{api.Inconclusive, "", api.Text{
				EN: "The program with the other clock did not serve, so nothing shows that the lock kept it out.",
				ZH: "换了时钟的程序没有服务，所以看不出是不是锁挡住了它。",
			}}
		},
	}
}

// crashBetween kills a process between two commands of its acquisition: in one run before the second command, then before
// the third, and so on.
func crashBetween() Experiment {
	return Experiment{
		Hazard: "crash-between", Group: holderFails, Unseen: true, Applies: claimedOrOnTrial("crash-between", api.LockServices()...),
		Plans: []string{"for each n from 2, A sells at asked, A holds n, A resumes at granted, A dies, B sells, B ends"},
		Title: api.Text{EN: "the process is killed between two commands of an acquisition", ZH: "进程在加锁的两条命令之间被杀死"},
		Shows: api.Text{EN: "a key that was created without its expiry is never deleted", ZH: "键已创建而没有过期时间，永远不会删除"},
		rule: func(p *played) *finding {
			return mustSellInTime(stalled(api.Textf("The process was killed before its command %[1]s, number %[2]d of the acquisition. No request acquired the lock within %[3]v.",
				"进程在加锁的第 %[2]d 条命令 %[1]s 之前被杀死，此后 %[3]v 内没有请求拿到锁。", p.Command.Name, p.Nth, player.GrantBound)))(p)
		},
	}
}

// lateAcquire delays each command of an acquisition until another request has acquired the lock. Before that, the lock of
// a killed holder has expired. An acquisition that reads the expired lock, and takes it over in a later command, has read
// too early.
func lateAcquire() Experiment {
	return Experiment{
		Hazard: "late-acquire", Group: holderFails, Applies: api.Card.OnTrial,
		Plans: []string{"for each n, C sells at read, C dies, 1.5 leases pass, A sells at asked, A holds n, A resumes at granted, B sells for 1 lease working 0.5 leases, A delivers, A resumes, B ends"},
		Title: api.Text{
			EN: "a command of an acquisition arrives late, when another request holds the lock",
			ZH: "加锁的一条命令迟到，锁已被另一个请求持有",
		},
		Shows: api.Text{
			EN: "an acquisition that looks first, and takes the lock in another command, takes the lock of another request",
			ZH: "先查看、再用另一条命令加锁，会夺走别人的锁",
		},
		rule: func(p *played) *finding {
			if p.Ops[contender].Reason != string(api.Lost) {
				return nil
			}
			return &finding{api.Aborted, "", api.Text{
				EN: "The lock was taken from the contender, which noticed it and did not write.",
				ZH: "竞争者的锁被夺走，它发现了，没有写入。",
			}}
		},
	}
}

// lateRelease delays each command of a release until the lease has ended and the contender has the
// lock. The command arrives late, as on a slow network. A release of two commands, such as GET and
// DEL, has compared too early, and frees the contender's lock.
func lateRelease() Experiment {
	return Experiment{
		Hazard: "late-release", Group: holderFails, Unseen: true, Applies: claimedOrOnTrial("late-release", api.LockServices()...),
		Plans: []string{"for each n, A sells at written, A renews, A holds n, A resumes, B sells at read, B stops, A delivers, A ends, C sells for 0.5 s, C ends, B resumes"},
		Title: api.Text{
			EN: "a command of the release arrives late, when another request holds the lock",
			ZH: "释放锁的一条命令迟到，锁已被另一个请求持有",
		},
		Shows: api.Text{
			EN: "a release that compares and deletes in two commands frees the lock of another request",
			ZH: "分两条命令比较和删除，会解除别人的锁",
		},
		rule: freedForeignLock,
	}
}

// lostReply loses the answer to an acquisition, so the client does not know that it has the lock. C loads scripts and
// creates directories first: only the acquisition's answer must be lost.
func lostReply() Experiment {
	return Experiment{
		Hazard: "lost-reply", Group: linkFails, Applies: claimedOrOnTrial("lost-reply", api.LockServices()...),
		Plans: []string{"for each n, C sells, C ends, A sells for 1 s at asked, A loses n, A resumes, A ends, B sells, B ends"},
		Title: api.Text{EN: "the answer to an acquisition is lost", ZH: "加锁成功，应答却丢失"},
		Shows: api.Text{EN: "an orphaned lock keeps the others waiting", ZH: "锁被一个不知道自己已加锁的请求占住"},
		rule: func(p *played) *finding {
			waited := p.Ops[contender].Waited
			if p.Ops[contender].Outcome == history.OK && waited < player.Lease/2+time.Duration(p.Card.PollMS)*time.Millisecond {
				return nil
			}
			return stalled(api.Textf(
				"A lock without an owner kept the next request waiting for %v.",
				"一把没有主人的锁让下一个请求等了 %v。", waited.Round(100*time.Millisecond)))
		},
	}
}

// releaseReply loses the answer to each command of a release in turn. A holder that cannot know whether it has released
// the lock must not renew it any more, and must not leave it without an end.
func releaseReply() Experiment {
	return Experiment{
		Hazard: "release-reply", Group: linkFails, Unseen: true, Applies: claimedOrOnTrial("release-reply", api.LockServices()...),
		Plans: []string{"for each n, A sells at written, A renews, A loses n, A resumes, A ends, B sells, B ends"},
		Title: api.Text{EN: "the answer to a command of the release is lost", ZH: "释放锁的一条命令已执行，应答却丢失"},
		Shows: api.Text{EN: "a lock that nobody holds is renewed for ever, or never expires", ZH: "没有人持有的锁被一直续期，或者永不过期"},
		rule: func(p *played) *finding {
			return mustSellInTime(stalled(api.Textf("The answer to the command %[1]s, number %[2]d of the release, was lost. No request acquired the lock within %[3]v.",
				"释放锁的第 %[2]d 条命令 %[1]s 的应答丢失，此后 %[3]v 内没有请求拿到锁。", p.Command.Name, p.Nth, player.GrantBound)))(p)
		},
	}
}

// lateAnswer delays the answer to the holder's acquisition, and holds back all later commands of its lock, until the
// contender has the lock. A holder that counts its lease from the answer still believes in its lock then. Some drivers
// get many answers to a command, or have a short time-out, so each of n answers gets an nth of the delay.
func lateAnswer() Experiment {
	return Experiment{
		Hazard: "late-answer", Group: linkFails, Applies: claimedOrOnTrial("late-answer", api.LockServices()...),
		Plans: []string{"for each n, A sells for 3 leases at asked, A slows for 2 s, A holds n+1, A resumes at read, A stops, A speeds up, B sells, B ends, A resumes"},
		Title: api.Text{EN: "the answer to an acquisition is late, and the renewals do not arrive", ZH: "加锁的应答迟到，续期的命令没有到达"},
		Shows: api.Text{
			EN: "a holder that counts its lease from the answer writes after the end of the lease",
			ZH: "从应答算起租期的持有者，在租期结束之后写入",
		},
		lapse: pauseLapse(),
	}
}

// missedRelease holds back each command of a waiter until the holder has released the lock. A waiter that looks first,
// and subscribes in another command, then waits for a message that has been sent. The held command arrives late enough
// for a waiter that takes old messages for those of another wait.
func missedRelease() Experiment {
	return Experiment{
		Hazard: "missed-release", Group: linkFails, Applies: func(c api.Card) bool { return c.OnTrial() && (!c.Unchecked || c.Renews) },
		Plans: []string{"for each n, A sells at read, B holds n, B sells for 23 s, A resumes, A ends, 0.17 leases pass, B delivers, B ends"},
		Title: api.Text{EN: "the lock is released between two commands of a waiter", ZH: "锁在等待者的两条命令之间被释放"},
		Shows: api.Text{EN: "a waiter that subscribes after its look at the lock sleeps through the release", ZH: "先查看锁、之后才订阅的等待者错过锁的释放"},
		rule: func(p *played) *finding {
			late := p.Ops[contender].Return - p.Ops[holder].Return
			if late < p.patience() {
				return nil
			}
			return stalled(api.Textf("The command %[1]s, number %[2]d of the waiter, arrived after the holder's release. The waiter still did not have the lock %[3]v later.",
				"等待者的第 %[2]d 条命令 %[1]s 在持锁者释放锁之后到达，此后 %[3]v 它仍然没有拿到锁。", p.Command.Name, p.Nth, late.Round(time.Second)))
		},
	}
}

// renewalReply loses the answer to a renewal that the server has carried out
// (cirello-io/dynamolock#280). The lock is held, so its holder must keep it and sell. Without another renewal, the lease
// ends meanwhile, and the contender acquires the lock.
func renewalReply() Experiment {
	gaveUp := &finding{api.Aborted, "", api.Text{
		EN: "The server had renewed the lock, but the holder gave it up and did not write.",
		ZH: "服务器已经续期，但持锁者放弃了锁，没有写入。",
	}}
	stuck := stalled(api.Textf("No other request acquired the lock within %v.", "%v 内没有其他请求拿到锁。", player.GrantBound))
	return Experiment{
		Hazard: "renewal-reply", Group: reported, Applies: func(c api.Card) bool { return c.Locker && c.Renews },
		Plans: []string{"A sells at read, A loses a renewal, B sells for 22 s, 1.5 leases pass, A resumes, B ends"},
		Title: api.Text{EN: "the answer to a renewal is lost", ZH: "续期成功，应答却丢失"},
		Shows: api.Text{EN: "does the holder give up a lock that it still has?", ZH: "持锁者会放弃其实还在的锁吗？"},
		lapse: api.Text{
			EN: "The holder stopped its renewals after the lost answer, and wrote after the end of its lease.",
			ZH: "应答丢失之后持锁者不再续期，租期结束后仍然写入。",
		},
		rule: func(p *played) *finding {
			if f := mustSell(gaveUp, holder)(p); f != nil {
				return f
			}
			return mustSell(stuck, contender)(p)
		},
	}
}
