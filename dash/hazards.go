package dash

import (
	"slices"

	"oversell/api"
	"oversell/lab/experiment"
)

type hazard struct {
	ID           string
	Title, Shows api.Text
	Basic        bool // the matrix opens on the basic hazards
}

func hazards() (all []hazard) {
	chinese := inChinese()
	for _, e := range experiment.All() {
		words := chinese[e.Hazard]
		all = append(all, hazard{e.Hazard, bilingual(e.Title, words[0]), bilingual(e.Shows, words[1]), isBasic(e.Hazard)})
	}
	return all
}

// isBasic reports whether a hazard is one of the eight with which a class begins. Each of them
// breaks a basic strategy, or shows that only some locks survive it.
func isBasic(hazard string) bool {
	return slices.Contains([]string{"race", "replica-race", "crash", "overrun", "pause", "failover", "clock-jump", "cutoff"}, hazard)
}

// hazardOf returns the hazard with this id. If there is none, ok is false and h has only the id.
func hazardOf(id string) (h hazard, ok bool) {
	for _, h := range hazards() {
		if h.ID == id {
			return h, true
		}
	}
	return hazard{ID: id}, false
}

// inChinese returns the Chinese title and description of each experiment, by its hazard.
func inChinese() map[string][2]string {
	return map[string][2]string{
		"race":                 {"同一进程里的两个请求", "卖出两件，库存只减少一件"},
		"replica-race":         {"两个副本上的两个请求", "一个副本时正确，两个副本时出错"},
		"early-release":        {"先解锁，后提交", "加了锁，仍然超卖"},
		"cas-storm":            {"60 个请求同时到达", "每卖出一件，有多少次尝试因冲突而失败"},
		"deadlock":             {"两个请求都已读取，又都要写入", "错误 1213：MySQL 回滚其中一个"},
		"crash":                {"持锁者的进程被杀死", "其他请求要等多久才能拿到锁"},
		"overrun":              {"工作时间比租期长", "持锁者还在工作，租期已到"},
		"foreign-unlock":       {"迟到的释放", "释放了已属于别人的锁"},
		"pause":                {"持锁者停顿超过租期后继续写入", "两个持锁者，迟到的写入覆盖了别人的写入"},
		"pause-at-read":        {"持锁者停顿超过租期，恢复时另一个请求已读取、尚未写入", "迟到的写入又被覆盖，同一件卖了两次"},
		"failover":             {"主节点在复制锁之前宕机", "键丢失，出现两个持锁者"},
		"failover-sentinel":    {"主节点在复制锁之前宕机，由 Sentinel 换主", "键丢失，出现两个持锁者"},
		"failover-cluster":     {"主节点在复制锁之前宕机，由 Redis 集群自己换主", "键丢失，出现两个持锁者"},
		"split-brain":          {"Sentinel 提升了从节点，旧主节点仍在为它那一侧的客户端服务（脑裂）", "两个主节点，各有一个持锁者"},
		"split-renewal":        {"脑裂之前锁已复制到从节点", "旧主节点继续给锁续期，新主节点上的锁到期"},
		"min-replicas":         {"脑裂，min-replicas-to-write 为 1", "旧主节点拒绝竞争者"},
		"min-replicas-renewal": {"脑裂之前锁已复制，min-replicas-to-write 为 1", "续期被拒绝，持锁者及时停止"},
		"quorum-loss":          {"3 个 Sentinel 宕机 2 个，然后 Redis 主节点宕机", "停止销售；Sentinel 恢复之后继续，锁没有丢失"},
		"resharding":           {"持锁期间，Redis 集群把锁所在的槽迁移到另一个主节点", "锁随槽一起迁移"},
		"minority-loss":        {"5 个 Redis 宕机 2 个，3 个 ZooKeeper 与 3 个 etcd 的领导者宕机", "业务照常进行"},
		"majority-loss":        {"5 个 Redis 宕机 3 个，3 个 ZooKeeper 宕机 2 个，3 个 etcd 宕机 2 个", "拒绝服务，但不会超卖"},
		"clock-jump":           {"所有 Redis 的时钟快进一小时", "键提前过期，出现两个持锁者"},
		"session-expiry":       {"持锁者的会话过期", "它的节点被删除，它能发现吗？"},
		"dead-waiter":          {"队列中间的一个等待者宕机", "排在后面的请求与持锁者同时进入临界区"},
		"cutoff":               {"持锁者与锁服务断开", "租期已到，它还会写入吗？"},
		"lost-reply":           {"加锁成功，应答却丢失", "锁被一个不知道自己已加锁的请求占住"},
		"late-release":         {"释放锁的一条命令迟到，锁已被另一个请求持有", "分两条命令比较和删除，会解除别人的锁"},
		"crash-between":        {"进程在加锁的两条命令之间被杀死", "键已创建而没有过期时间，永远不会删除"},
		"late-answer":          {"加锁的应答迟到，续期的命令没有到达", "从应答算起租期的持有者，在租期结束之后写入"},
		"partition":            {"一个副本只连得上五个 Redis 中的两个，另一个副本只连得上其余三个", "如果两个就够，会有两个持锁者"},
		"bare-majority":        {"持锁者只在五个 Redis 中的三个上有锁，其中一个丢失了数据", "另外三个又组成多数，出现两个持锁者"},
		"nesting":              {"持锁者再次加锁", "自己等待自己"},
		"polling":              {"60 个等待者，锁没有变化", "等待者向后端发送多少请求"},
		"herd":                 {"60 个等待者时释放一次锁（惊群）", "所有等待者都被唤醒，只有一个能拿到锁"},
		"write-behind":         {"卖出之后、更新数据行之前宕机", "已卖出，数据行还没有更新；以后会更新吗？"},
		"percentiles":          {"MySQL 停顿 200 毫秒（机器忙时更长），测量两次", "闭环的 p99 看不到停顿，开环的 p99 看得到"},
		"restart":              {"运行中重启 MySQL、Redis、ZooKeeper 和 etcd", "先出错，后恢复"},
		"database-down":        {"运行中杀死 MySQL，停一段时间后再启动", "停机期间数据行里的库存卖不出去，但不丢失更新，恢复后继续销售"},
		"galera":               {"Galera 集群的两个节点", "一个节点上的行锁，因另一个节点的提交而失效"},
		"two-masters":          {"两个主节点，之间有延迟", "每个节点都卖掉对方已卖的"},
		"stale-read":           {"从有延迟的从节点读取", "先后两次销售，第二次又卖掉第一次已卖的"},

		"starved":           {"持锁者的进程一直分不到 CPU，租期结束后才继续工作", "迟到的续期或时钟能阻止它写入吗？"},
		"renewal-reply":     {"续期成功，应答却丢失", "持锁者会放弃其实还在的锁吗？"},
		"waiter-session":    {"等待者的会话过期", "它白白等待，还是与下一个等待者同时拿到锁？"},
		"operator":          {"持锁者工作期间，运维人员删除了它的锁", "它在写入之前能发现吗？"},
		"operator-at-write": {"持锁者最后一次检查之后，运维人员删除了它的锁", "两个持锁者，竞争者覆盖了前一个的写入"},
	}
}
