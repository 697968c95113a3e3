package stepper

import (
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/experiment"
	"oversell/lab/history"
)

// unread stands for the count of a client that has read none: its UPDATE subtracts in the database.
const unread = -1

// explain says what a client has done at a step. read is the count that the client has read, or
// unread.
func explain(at api.Paused, read int) api.Text {
	switch {
	case at.Step == api.Granted && at.Fence > 0:
		return api.Textf("has the lock, fence %d", "拿到了锁，栅栏号 %d", at.Fence)
	case at.Step == api.Read:
		return api.Textf("has read %d", "读到了 %d", read)
	case at.Step == api.Writing && read != unread:
		return api.Textf("is about to write %d", "即将写入 %d", read-1)
	case at.Step == api.Written && read != unread:
		return api.Textf("has written %d", "写好了 %d", read-1)
	case rolledBack(at.Step, at.Commands):
		return api.Textf("was rolled back by the database: its steps since BEGIN are undone", "被数据库回滚：BEGIN 之后的步骤都已撤销")
	}
	return Done(at.Step)
}

// Done says what a client has done at a step of any strategy.
func Done(step api.Step) api.Text {
	if w, ok := map[api.Step]api.Text{
		api.Asked:     api.Textf("wants the lock", "想要锁"),
		api.Queued:    api.Textf("is in the queue", "已在队列中"),
		api.Granted:   api.Textf("has the lock", "拿到了锁"),
		api.Writing:   api.Textf("is about to write", "即将写入"),
		api.Written:   api.Textf("has written", "写好了"),
		api.Released:  api.Textf("has released the lock", "释放了锁"),
		"after-setnx": api.Textf("has the key, which has no expiry yet", "拿到了键，但键还没有过期时间"),
		"reserved":    api.Textf("has reserved a piece", "预留了一件"),
		"taken":       api.Textf("has sold a piece, and the database is not updated yet", "已卖出，数据库还没有更新"),
		"compared":    api.Textf("has found its own value in the key, and is about to delete the key", "确认键里是自己的值，即将删除这个键"),
		"unlocked":    api.Textf("has released the lock, and has not committed yet", "释放了锁，还没有提交"),
	}[step]; ok {
		return w
	}
	return api.Textf("is at this step", "到了这一步")
}

// frees reports whether a waiting client may acquire the lock when the other client reaches step.
func frees(step api.Step) bool { return step == api.Released || step == "unlocked" }

// rolledBack reports whether a client gave up a transaction on its way to a step.
func rolledBack(step api.Step, commands []string) bool {
	return step == api.Released && slices.Contains(commands, "ROLLBACK")
}

// retries says that a client waits although no lock of the other client can stop it.
func retries() api.Text { return api.Textf("pauses before it tries again", "稍候重试") }

func waits() api.Text { return api.Textf("waits for the lock", "在等锁") }

func answer(op history.Op) api.Text {
	if op.Outcome != history.OK {
		why := experiment.Answer(op)
		return api.Textf("answer: %[1]s", "得到答复：%[2]s", why.EN, why.ZH)
	}
	if !op.HasRemaining {
		return api.Textf("answer: sold", "得到答复：已售出")
	}
	return api.Textf("answer: sold, %d left", "得到答复：已售出，剩 %d", op.Remaining)
}

// writes reports whether a client has written the stock at this entry, or at the latest here.
func writes(step api.Step, text api.Text) bool {
	return step == api.Written || step == "" && strings.HasPrefix(text.EN, "answer: sold")
}

func sentence(stock check.Conservation) api.Text {
	end := api.Textf("inconclusive, because an answer is missing.", "无法判定，因为有应答没有收到。")
	switch lost := stock.Lost(); {
	case lost == 1:
		end = api.Textf("an update was lost.", "丢失了一次更新。")
	case lost > 1:
		end = api.Textf("%d updates were lost.", "丢失了 %d 次更新。", lost)
	case stock.Verdict == api.Holds:
		end = api.Textf("no update was lost.", "没有丢失更新。")
	case stock.Verdict == api.Broken:
		end = api.Textf("the stock fell by more than was sold.", "库存的减少超过了售出的数量。")
	}
	return api.Textf("%[1]d sold, %[2]d left of %[3]d: %[4]s", "原有 %[3]d，售出 %[1]d，剩 %[2]d：%[5]s",
		stock.Sold, stock.Remaining, stock.Initial, end.EN, end.ZH)
}
