package stepper

import (
	"fmt"
	"strings"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/experiment"
	"oversell/lab/history"
)

// Words is a sentence in English and in Chinese.
type Words struct{ EN, ZH string }

func words(en, zh string, values ...any) Words {
	return Words{fmt.Sprintf(en, values...), fmt.Sprintf(zh, values...)}
}

// unread stands for the count of a client that has read none: its UPDATE subtracts in the database.
const unread = -1

// explain says what a client has done at a step. read is the count that the client has read, or
// unread.
func explain(at api.Paused, read int) Words {
	switch {
	case at.Step == api.Granted && at.Fence > 0:
		return words("has the lock, fence %d", "拿到了锁，栅栏号 %d", at.Fence)
	case at.Step == api.Read:
		return words("has read %d", "读到了 %d", read)
	case at.Step == api.Writing && read != unread:
		return words("is about to write %d", "即将写入 %d", read-1)
	case at.Step == api.Written && read != unread:
		return words("has written %d", "写好了 %d", read-1)
	}
	if w, ok := map[api.Step]Words{
		api.Asked:     {"wants the lock", "想要锁"},
		api.Queued:    {"is in the queue", "已在队列中"},
		api.Granted:   {"has the lock", "拿到了锁"},
		api.Writing:   {"is about to write", "即将写入"},
		api.Written:   {"has written", "写好了"},
		api.Released:  {"has released the lock", "释放了锁"},
		"after-setnx": {"has the key, which has no expiry yet", "拿到了键，但键还没有过期时间"},
		"reserved":    {"has reserved a piece", "预留了一件"},
		"taken":       {"has sold a piece, and the database is not updated yet", "已卖出，数据库还没有更新"},
		"compared":    {"has found its own value in the key, and is about to delete the key", "确认键里是自己的值，即将删除这个键"},
		"unlocked":    {"has released the lock, and has not committed yet", "释放了锁，还没有提交"},
	}[at.Step]; ok {
		return w
	}
	return Words{"is at this step", "到了这一步"}
}

// frees reports whether a waiting client may acquire the lock when the other client reaches step.
func frees(step api.Step) bool { return step == api.Released || step == "unlocked" }

func waits() Words { return words("waits for the lock", "在等锁") }

func answer(op history.Op) Words {
	if op.Outcome != history.OK {
		why := experiment.Answer(op)
		return words("answer: %[1]s", "得到答复：%[2]s", why.EN, why.ZH)
	}
	if !op.HasRemaining {
		return words("answer: sold", "得到答复：已售出")
	}
	return words("answer: sold, %d left", "得到答复：已售出，剩 %d", op.Remaining)
}

// writes reports whether a client has written the stock at this entry, or at the latest here.
func writes(step string, words Words) bool {
	return api.Step(step) == api.Written || step == "" && strings.HasPrefix(words.EN, "answer: sold")
}

func sentence(stock check.Conservation) Words {
	end := words("inconclusive, because an answer is missing.", "无法判定，因为有应答没有收到。")
	switch lost := stock.Lost(); {
	case lost == 1:
		end = words("an update was lost.", "丢失了一次更新。")
	case lost > 1:
		end = words("%d updates were lost.", "丢失了 %d 次更新。", lost)
	case stock.Verdict == check.Holds:
		end = words("no update was lost.", "没有丢失更新。")
	case stock.Verdict == check.Broken:
		end = words("the stock fell by more than was sold.", "库存的减少超过了售出的数量。")
	}
	return Words{
		fmt.Sprintf("%d sold, %d left of %d: %s", stock.Sold, stock.Remaining, stock.Initial, end.EN),
		fmt.Sprintf("原有 %d，售出 %d，剩 %d：%s", stock.Initial, stock.Sold, stock.Remaining, end.ZH),
	}
}
