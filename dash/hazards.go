package dash

import "oversell/lab/experiment"

// hazard describes an experiment in both languages.
type hazard struct {
	ID           string
	Title, Shows Text
}

// hazards returns all hazards, in the order of the experiments.
func hazards() (all []hazard) {
	chinese := inChinese()
	for _, e := range experiment.All() {
		words := chinese[e.Hazard]
		all = append(all, hazard{e.Hazard, Text{e.Title, words[0]}, Text{e.Shows, words[1]}})
	}
	return all
}

// hazardOf returns the hazard of that name. If it does not exist, it has the name only.
func hazardOf(id string) (h hazard, ok bool) {
	for _, h := range hazards() {
		if h.ID == id {
			return h, true
		}
	}
	return hazard{ID: id}, false
}

// inChinese returns the titles of the experiments and what they show, in Chinese.
func inChinese() map[string][2]string {
	return map[string][2]string{
		"race":           {"同一进程里的两个请求", "两次销售，库存里只留下一次"},
		"replica-race":   {"两个副本上的两个请求", "一个副本时正确，两个副本时出错"},
		"early-release":  {"先解锁，后提交", "加了锁，仍然超卖"},
		"cas-storm":      {"60 个请求同时到达", "每卖出一件，有多少次尝试输给了对手"},
		"deadlock":       {"两个都已读取，又都要写入", "错误 1213：其中一个成为牺牲者"},
		"crash":          {"持锁者的进程被杀死", "别人要为死去的持锁者等多久"},
		"overrun":        {"工作时间比租期长", "持锁者还在工作，租期已到"},
		"foreign-unlock": {"迟到的释放", "释放了现在属于别人的锁"},
		"pause":          {"持锁者睡过租期，醒来再写", "两个持锁者，迟到的写入覆盖了别人"},
		"pause-at-read":  {"持锁者停顿超过租期，醒来时对手已读取、尚未写入", "迟到的写入又被对手覆盖，同一件卖了两次"},
		"failover":       {"主节点在复制锁之前死去", "键没有了，出现两个持锁者"},
		"minority-loss":  {"5 个 Redis 死 2 个，3 个 ZooKeeper 与 3 个 etcd 的领导者死去", "业务照常进行"},
		"majority-loss":  {"5 个 Redis 死 3 个，3 个 ZooKeeper 死 2 个，3 个 etcd 死 2 个", "拒绝服务，但不会卖错"},
		"clock-jump":     {"所有 Redis 的时钟快进一小时", "键提前过期，出现两个持锁者"},
		"session-expiry": {"持锁者的会话过期", "它的节点没有了，它自己知道吗？"},
		"dead-waiter":    {"队列中间的一个等待者死去", "后面的人与持锁者同时进入"},
		"cutoff":         {"持锁者与锁服务断开", "它的授权到期，还会写吗？"},
		"lost-reply":     {"加锁成功，应答却丢失", "锁被没人知道的持有者占住"},
		"nesting":        {"持锁者再次加锁", "自己等待自己"},
		"polling":        {"60 个等待者，什么也没发生", "对后端的无谓询问"},
		"herd":           {"60 个等待者面前释放一次锁", "所有人被唤醒，只有一个不是白白醒来"},
		"write-behind":   {"卖出之后、写入数据行之前死去", "已卖出，数据行却不知道；以后会知道吗？"},
		"percentiles":    {"MySQL 停顿 200 毫秒（机器忙时更长），测量两次", "闭环的 p99 察觉不到，顾客却察觉到了"},
		"restart":        {"营业中重启 MySQL、Redis、ZooKeeper 和 etcd", "先出错，后恢复"},
		"galera":         {"Galera 集群的两个节点", "一个节点上的行锁，被另一个节点的提交推翻"},
		"two-masters":    {"两个主节点，之间有延迟", "每个节点都卖掉对方已卖的"},
		"stale-read":     {"从有延迟的从节点读取", "先后两次，第二次又卖掉第一次已卖的"},
	}
}
