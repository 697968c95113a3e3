package experiment

import (
	"oversell/api"
	"oversell/lab/history"
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
		judge: mustSell(waited, holder),
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
		judge: mustSell(expired, holder),
	}
}

// crash kills the holder at once, or when it has renewed its lease: a renewal may give a longer lease than the grant, or
// add one to the rest. A lock without renewals would have expired.
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
		judge: freedInTime(api.Textf(
			"No request acquired the lock within %v after the holder was killed.", "持锁者被杀死后 %v 内没有请求拿到锁。", grantBound)),
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
		judge: freedInTime(api.Textf(
			"The holder's machine died, and its connections stayed open: no request acquired the lock within %v.",
			"持锁者的机器掉电，它的连接仍然打开：%v 内没有请求拿到锁。", grantBound)),
	}
}

// freedInTime returns a judge of a dead holder's lock, which the contender must get.
func freedInTime(late api.Text) func(*participant) *finding {
	return func(p *participant) *finding {
		if p.stopped[holder] == "" { // it had sold before, and died with nothing to lose
			return neverStopped()
		}
		return mustSellInTime(stalled(late))(p)
	}
}

// pause freezes the holder's process after its last check of the lock, until its lease has ended.
func pause() Experiment {
	return Experiment{
		Hazard: "pause", Group: holderFails, Basic: true, Applies: always, Fenced: true,
		Plans: []string{"A sells at writing, A freezes, B sells, 1 leases pass, B ends, A thaws, A resumes"},
		Title: api.Text{EN: "the holder pauses past the end of its lease, then writes", ZH: "持锁者停顿超过租期后继续写入"},
		Shows: api.Text{EN: "two holders, and the late write wins", ZH: "两个持锁者，迟到的写入覆盖了别人的写入"},
		lapse: pauseLapse(),
	}
}

// pauseAtRead puts the holder's late write between the contender's read and write. If a fencing
// token is not registered in the row before the read, the row accepts both writes.
func pauseAtRead() Experiment {
	return Experiment{
		Hazard: "pause-at-read", ClaimedAs: "pause", Group: holderFails, Applies: always, Fenced: true,
		Plans: []string{"A sells at writing, A freezes, B sells at read, 1 leases pass, B stops, A thaws, A resumes, A ends, B resumes"},
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
		Hazard: "starved", Group: reported, Applies: func(c Card) bool { return c.Locker && c.Lease }, Fenced: true,
		Plans: []string{"A sells working 0.5 leases at read, A freezes, B sells, B ends, A thaws, A resumes"},
		Title: api.Text{
			EN: "the holder's process gets no processor until its lease has ended, then works on",
			ZH: "持锁者的进程一直分不到 CPU，租期结束后才继续工作",
		},
		Shows: api.Text{EN: "does a late renewal, or the clock, stop its write?", ZH: "迟到的续期或时钟能阻止它写入吗？"},
		lapse: pauseLapse(),
	}
}

// foreignUnlock lets a request release its lock late. Both replicas are new, so they give the same thread numbers.
func foreignUnlock() Experiment {
	return Experiment{
		Hazard: "foreign-unlock", Group: holderFails, Applies: func(c Card) bool { return c.Lease },
		Plans: []string{"A is restarted, B is restarted, A sells at written, A freezes, B sells at read, B stops, A thaws, A resumes, A ends, C sells for 0.5 s, C ends, B resumes"},
		Title: api.Text{EN: "a late release", ZH: "迟到的释放"},
		Shows: api.Text{EN: "the release of a lock that another request holds by then", ZH: "释放了已属于别人的锁"},
		judge: freedForeignLock,
	}
}

// freedForeignLock finds a third request that acquired the lock while the contender held it.
func freedForeignLock(p *participant) *finding {
	if p.ops[observer].Outcome == history.OK && p.ops[contender].Reason == "lost" {
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
		Hazard: "operator", Group: reported, Applies: inServer, Fenced: true,
		Plans: []string{"A sells at read, locks deleted, B sells, 1 leases pass, B ends, A resumes"},
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
		Applies: func(c Card) bool { return inServer(c) && (c.Lease || c.lockService() != "mysql") },
		Plans:   []string{"A sells at writing, locks deleted, B sells at read, B stops, A resumes, A ends, B resumes"},
		Title:   api.Text{EN: "an operator deletes the lock after the holder's last check", ZH: "持锁者最后一次检查之后，运维人员删除了它的锁"},
		Shows:   api.Text{EN: "two holders, and the contender overwrites the holder's write", ZH: "两个持锁者，竞争者覆盖了前一个的写入"},
		lapse:   api.Text{EN: "The holder's lock was deleted, and it wrote anyway.", ZH: "持锁者的锁已被删除，它仍然写入。"},
	}
}

func cutoff() Experiment {
	return Experiment{
		Hazard: "cutoff", Group: linkFails, Basic: true, Fenced: true,
		Applies: func(c Card) bool {
			return locksOn("redis", "zookeeper", "etcd", "postgres")(c) || c.onTrial() && c.Renews && c.lockService() == "mysql"
		},
		Plans: []string{"A sells at read, A is cut off, B sells, B ends, A resumes, A ends, A reconnects"},
		OnRow: "A sells at read, A holds 1, B sells, B ends, A delivers, A resumes",
		Title: api.Text{EN: "the holder is cut off from the lock service", ZH: "持锁者与锁服务断开"},
		Shows: api.Text{EN: "its lease expires; does it still write?", ZH: "租期已到，它还会写入吗？"},
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

// bareMajority lets the holder acquire the lock on redis-1, redis-2 and redis-3 alone. Then redis-1
// loses the lock. Only two of five Redis reject the contender, so it has a majority, too. The others refuse the holder's
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
		Hazard: "failover", Group: serversFail, Basic: true, Fenced: true, Applies: func(c Card) bool { return c.uses("redis") },
		Plans: []string{"replication stops, A sells at writing, writing behind stops, C sells try, C ends, redis fails over, B sells briefly, B ends, A resumes"},
		Title: api.Text{EN: "the Redis master dies before it has replicated the lock", ZH: "主节点在复制锁之前宕机"},
		Shows: keyIsLost(),
		judge: mustRise,
	}
}

// mustRise finds that the fences of the new master are below those of the row. No request can sell until they have
// risen above it.
func mustRise(p *participant) *finding {
	if !p.Fenced || p.ops[contender].Reason != string(api.Fenced) {
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
		judge: mustSell(rejected, holder, contender),
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

func onMajorities(c Card) bool {
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
