package chaos

import "oversell/api"

// Words returns the move as a sentence. The steps have the names that they have in an event log.
func (m Move) Words() api.Text {
	switch words := api.Textf(m.Do.english(), m.Do.chinese(), Name(m.Client), max(1, m.Nth)); m.Do {
	case Heals:
		return api.Textf(m.Of.healed().EN, m.Of.healed().ZH, Name(m.Client))
	case Sells:
		if m.Try {
			words = api.Textf("%[1]s It does not wait for the lock.", "%[2]s它不等锁。", words.EN, words.ZH)
		}
		if m.Nested {
			words = api.Textf("%[1]s It acquires the lock a second time.", "%[2]s它再次加锁。", words.EN, words.ZH)
		}
		return m.stopping(words)
	case Resumes:
		return m.stopping(words)
	default:
		return words
	}
}

func (m Move) stopping(words api.Text) api.Text {
	if m.At == "" {
		return words
	}
	return api.Textf("%[1]s It stops at the step %[3]s.", "%[2]s它停在步骤 %[3]s。", words.EN, words.ZH, m.At)
}

// english has the name of the client, and then the number of a command or a server.
func (v Verb) english() string {
	return map[Verb]string{
		Sells: "%[1]s begins a sale.", Resumes: "%[1]s goes on.", Cancels: "%[1]s closes its connection.", Passes: "More than a lease passes.%.0[1]s",
		Freezes: "The process of %[1]s is frozen.", Dies: "The process of %[1]s is killed.", Cut: "%[1]s is cut off from the servers of the lock.",
		Slow:  "%[1]s gets the answers of the lock's servers half a second late.",
		Holds: "From now on, command %[2]d of %[1]s to the lock is held back.", Loses: "From now on, the answer to command %[2]d of %[1]s to the lock is lost.",
		Disconnect: "The connections of %[1]s to the lock's servers end.", Deletes: "An operator deletes the locks.%.0[1]s",
		Crashes: "Server %[2]d of the lock is killed, and started again.", Restarts: "Server %[2]d of the lock is restarted.",
		Jumps: "The clock of server %[2]d jumps ahead by an hour.",
	}[v]
}

func (v Verb) chinese() string {
	return map[Verb]string{
		Sells: "%[1]s 开始一笔销售。", Resumes: "%[1]s 继续。", Cancels: "%[1]s 断开了连接。", Passes: "过了一个多租期。%.0[1]s",
		Freezes: "%[1]s 的进程被冻结。", Dies: "%[1]s 的进程被杀死。", Cut: "%[1]s 与锁服务断开。",
		Slow:  "锁服务对 %[1]s 的应答慢半秒。",
		Holds: "从现在起，%[1]s 发给锁服务的第 %[2]d 条命令被扣住。", Loses: "从现在起，%[1]s 发给锁服务的第 %[2]d 条命令的应答丢失。",
		Disconnect: "%[1]s 到锁服务的连接全部断开。", Deletes: "运维人员删除了锁。%.0[1]s",
		Crashes: "锁服务的第 %[2]d 台服务器被杀死并重新启动。", Restarts: "锁服务的第 %[2]d 台服务器重启。",
		Jumps: "第 %[2]d 台服务器的时钟快进一小时。",
	}[v]
}

// healed says that a fault ends. It has the name of the client.
func (v Verb) healed() api.Text {
	return map[Verb]api.Text{
		Freezes: {EN: "The process of %s resumes.", ZH: "%s 的进程恢复运行。"},
		Dies:    {EN: "The process of %s starts again.", ZH: "%s 的进程重新启动。"},
		Cut:     {EN: "%s is connected again.", ZH: "%s 重新连上。"},
		Slow:    {EN: "%s gets the answers in time again.", ZH: "%s 的应答恢复及时。"},
		Holds:   {EN: "The command of %s that was held back arrives.", ZH: "%s 被扣住的命令到达。"},
		Jumps:   {EN: "The clocks are right again.%.0s", ZH: "时钟恢复正常。%.0s"},
	}[v]
}
