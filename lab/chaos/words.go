package chaos

import (
	"fmt"
	"strconv"
	"strings"

	"oversell/api"
)

// Words returns the move as a sentence. The steps have the names that they have in an event log.
func (m Move) Words() api.Text {
	form := sentences()[m.Do]
	if m.Do == Heals {
		form = healed()[m.Of]
	}
	number := strconv.Itoa(max(1, m.Nth))
	if m.Nth < 0 {
		number = map[int]string{N: "n", NextN: "n+1"}[m.Nth]
	}
	words := api.Textf(form.EN, form.ZH, Name(m.Client), number)
	if m.Do == Passes && m.For != (Amount{}) {
		pass := "pass"
		if m.For.N == 1 && m.For.Leases {
			pass = "passes"
		}
		words = api.Textf("%[1]s %[3]s.", "过了 %[2]s。%.0[3]s", m.For.String(), m.For.chinese(), pass)
	}
	add := func(so bool, en, zh string) {
		if so {
			words = api.Joined(words, api.Text{EN: en, ZH: zh})
		}
	}
	add(m.Low > 0, fmt.Sprintf("It concerns servers %d to %d.", m.Low, m.High), fmt.Sprintf("涉及第 %d 到第 %d 台。", m.Low, m.High))
	add(m.Names != "", "It takes two locks: "+m.Names+".", "它先后取两把锁："+strings.Replace(m.Names, " then ", "、", 1)+"。")
	add(m.IfRenews, "Locks that are not renewed go on at once.", "不续期的锁立即继续。")
	add(m.Early, "It waits less than a lease if nothing renews the lock.", "锁没有续期时，它等待的时间短于租期。")
	add(m.Again, "It does so only if it was refused before.", "只有之前被拒绝时才再试。")
	add(m.Try, "It does not wait for the lock.", "它不等锁。")
	add(m.Nested, "It acquires the lock a second time.", "它再次加锁。")
	add(m.Many, "It locks for writing, or takes two permits.", "它加写锁，或取两个许可。")
	add(m.Leased, "Nothing renews its lease.", "它的租期没有续期。")
	add(m.Do == Sells && m.For != Amount{}, "It waits "+m.For.String()+" for the lock at most.", "它最多等锁 "+m.For.chinese()+"。")
	add(m.Do == Slow && m.For != Amount{}, "An acquisition takes "+m.For.String()+" longer.", "一次加锁多用 "+m.For.chinese()+"。")
	add(m.Works != Amount{}, "It works "+m.Works.String()+" while it holds the lock.", "它持锁工作 "+m.Works.chinese()+"。")
	add(m.At != "", "It stops at the step "+string(m.At)+".", "它停在步骤 "+string(m.At)+"。")
	return words
}

func (a Amount) chinese() string {
	return strings.NewReplacer("leases", "个租期", "lease", "个租期", "s", "秒").Replace(a.String())
}

// sentences have the name of the client, and then the number of a command or a server.
func sentences() map[Verb]api.Text {
	return map[Verb]api.Text{
		Sells:        {EN: "%[1]s begins a sale.", ZH: "%[1]s 开始一笔销售。"},
		Resumes:      {EN: "%[1]s goes on.", ZH: "%[1]s 继续。"},
		Locks:        {EN: "%[1]s locks.", ZH: "%[1]s 加锁。"},
		Unlocks:      {EN: "%[1]s unlocks.", ZH: "%[1]s 解锁。"},
		Awaits:       {EN: "%[1]s awaits the latch, and sets it if it is open.", ZH: "%[1]s 等待闭锁打开；若已打开，先设置它。"},
		Counts:       {EN: "%[1]s counts the latch down.", ZH: "%[1]s 把闭锁减一。"},
		Ends:         {EN: "%[1]s gets its answer, or stops.", ZH: "%[1]s 得到应答，或停在某一步。"},
		Cancels:      {EN: "%[1]s closes its connection.", ZH: "%[1]s 断开了连接。"},
		Passes:       {EN: "More than a lease passes.%.0[1]s", ZH: "过了一个多租期。%.0[1]s"},
		Freezes:      {EN: "The process of %[1]s is frozen.", ZH: "%[1]s 的进程被冻结。"},
		Starves:      {EN: "The process of %[1]s gets no processor for half a lease.", ZH: "%[1]s 的进程有半个租期得不到 CPU。"},
		Dies:         {EN: "The process of %[1]s is killed.", ZH: "%[1]s 的进程被杀死。"},
		Cut:          {EN: "%[1]s is cut off from the servers of the lock.", ZH: "%[1]s 与锁服务断开。"},
		Slow:         {EN: "The answers of the lock's servers to %[1]s become slow.", ZH: "锁服务对 %[1]s 的应答变慢。"},
		Holds:        {EN: "From now on, command %[2]s of %[1]s to the lock is held back.", ZH: "从现在起，%[1]s 发给锁服务的第 %[2]s 条命令被扣住。"},
		HoldsRow:     {EN: "From now on, command %[2]s of %[1]s to the database is held back.", ZH: "从现在起，%[1]s 发给数据库的第 %[2]s 条命令被扣住。"},
		Loses:        {EN: "From now on, the answer to command %[2]s of %[1]s to the lock is lost.", ZH: "从现在起，%[1]s 发给锁服务的第 %[2]s 条命令的应答丢失。"},
		Disconnect:   {EN: "The connections of %[1]s to the lock's servers end.", ZH: "%[1]s 到锁服务的连接全部断开。"},
		Deletes:      {EN: "An operator deletes the locks.%.0[1]s", ZH: "运维人员删除了锁。%.0[1]s"},
		Crashes:      {EN: "Server %[2]s of the lock is killed, and started again.", ZH: "锁服务的第 %[2]s 台服务器被杀死并重新启动。"},
		Restarts:     {EN: "Server %[2]s of the lock is restarted.", ZH: "锁服务的第 %[2]s 台服务器重启。"},
		Stalls:       {EN: "Server %[2]s of the lock answers nothing for half a lease, as with a slow disk.", ZH: "锁服务的第 %[2]s 台服务器有半个租期没有应答，如同磁盘很慢。"},
		Jumps:        {EN: "The clock of server %[2]s jumps ahead by an hour.", ZH: "第 %[2]s 台服务器的时钟快进一小时。"},
		Stops:        {EN: "%[1]s stops.", ZH: "%[1]s 停下。"},
		Reads:        {EN: "%[1]s asks for more pieces than there are.", ZH: "%[1]s 要买的件数超过库存。"},
		LosesPower:   {EN: "The machine of %[1]s loses its power.", ZH: "%[1]s 的机器断电。"},
		Each:         {EN: "This plan is carried out for each command n of the lock.%.0[1]s", ZH: "对锁的每条命令 n 执行一次本计划。%.0[1]s"},
		Renews:       {EN: "The lock of %[1]s has just been renewed.", ZH: "%[1]s 的锁刚刚续期。"},
		RunsAhead:    {EN: "The program of %[1]s starts again, with a clock that is ten seconds ahead.", ZH: "%[1]s 的程序重新启动，时钟快十秒。"},
		Boots:        {EN: "The process of %[1]s is restarted.", ZH: "%[1]s 的进程重启。"},
		Refused:      {EN: "Servers of the lock refuse the connections of %[1]s.", ZH: "锁的一些服务器拒绝 %[1]s 的连接。"},
		LosesRenewal: {EN: "The answer to the next renewal of %[1]s is lost.", ZH: "%[1]s 下一次续期的应答丢失。"},
		LosesSession: {EN: "The session of %[1]s ends.", ZH: "%[1]s 的会话结束。"},
		Lags:         {EN: "The copy of the data gets no more writes.%.0[1]s", ZH: "从节点收不到后面的写入。%.0[1]s"},
		RowLags:      {EN: "What is sold in Redis does not reach the row.%.0[1]s", ZH: "Redis 里的销售写不到数据库那一行。%.0[1]s"},
		StaysBehind:  {EN: "Sentinel promotes a replica of Redis, and %[1]s stays with the old master.", ZH: "Sentinel 提升了从节点，%[1]s 仍连着旧主节点。"},
		QuorumDies:   {EN: "All Sentinels but number %[2]s die, and then the master of Redis.%.0[1]s", ZH: "除第 %[2]s 个以外的 Sentinel 宕机，然后 Redis 主节点宕机。%.0[1]s"},
		SlotMoves:    {EN: "The slot of the lock moves to another master, up to stage %[2]s of 4.%.0[1]s", ZH: "锁所在的槽迁移到另一个主节点，到第 %[2]s 阶段（共 4 阶段）。%.0[1]s"},
		MinorityDies: {EN: "Less than half of the servers of the lock die.%.0[1]s", ZH: "锁的服务器宕机不到一半。%.0[1]s"},
		MajorityDies: {EN: "More than half of the servers of the lock die.%.0[1]s", ZH: "锁的服务器宕机超过一半。%.0[1]s"},
		ClocksJump:   {EN: "The clocks of all Redis servers jump ahead by an hour.%.0[1]s", ZH: "所有 Redis 的时钟快进一小时。%.0[1]s"},
		FailsOver:    {EN: "A replica of Redis takes over, without what was written since the first step.%.0[1]s", ZH: "Redis 的从节点接管，它没有第一步以来写入的数据。%.0[1]s"},
	}
}

// healed has a sentence for the end of each fault that lasts.
func healed() map[Verb]api.Text {
	return map[Verb]api.Text{
		Freezes:     {EN: "The process of %[1]s resumes.", ZH: "%[1]s 的进程恢复运行。"},
		Dies:        {EN: "The process of %[1]s starts again.", ZH: "%[1]s 的进程重新启动。"},
		Cut:         {EN: "%[1]s is connected again.", ZH: "%[1]s 重新连上。"},
		Slow:        {EN: "%[1]s gets the answers in time again.", ZH: "%[1]s 的应答恢复及时。"},
		Holds:       {EN: "The command of %[1]s that was held back arrives.", ZH: "%[1]s 被扣住的命令到达。"},
		HoldsRow:    {EN: "The command of %[1]s to the database arrives.", ZH: "%[1]s 发给数据库的命令到达。"},
		StaysBehind: {EN: "%[1]s joins the new master.", ZH: "%[1]s 连上新主节点。"},
		QuorumDies:  {EN: "The Sentinels are back.%.0[1]s", ZH: "Sentinel 恢复。%.0[1]s"},
		Refused:     {EN: "The servers accept the connections of %[1]s again.", ZH: "这些服务器重新接受 %[1]s 的连接。"},
		FailsOver:   {EN: "The first Redis is the master again.%.0[1]s", ZH: "原来的 Redis 重新成为主节点。%.0[1]s"},
		Jumps:       {EN: "The clocks are right again.%.0[1]s", ZH: "时钟恢复正常。%.0[1]s"},
	}
}
