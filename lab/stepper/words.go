package stepper

import (
	"fmt"
	"strings"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// Words is a sentence in both languages.
type Words struct{ EN, ZH string }

// explain says what a client has done when it is at the step. read is the count that it has
// read.
func explain(at api.Paused, read int) Words {
	switch at.Step {
	case "asked":
		return Words{"wants the lock", "想要锁"}
	case "queued":
		return Words{"is in the queue", "已在队列中"}
	case "granted":
		if at.Fence > 0 {
			return Words{fmt.Sprintf("has the lock, fence %d", at.Fence), fmt.Sprintf("拿到了锁，栅栏号 %d", at.Fence)}
		}
		return Words{"has the lock", "拿到了锁"}
	case "read":
		return Words{fmt.Sprintf("has read %d", read), fmt.Sprintf("读到了 %d", read)}
	case "writing":
		return Words{fmt.Sprintf("will write %d next", read-1), fmt.Sprintf("接下来要写 %d", read-1)}
	case "written":
		return Words{fmt.Sprintf("has written %d", read-1), fmt.Sprintf("写好了 %d", read-1)}
	case "released":
		return Words{"has released the lock", "还回了锁"}
	case "after-setnx":
		return Words{"has the key, which has no expiry yet", "拿到了键，但键还没有过期时间"}
	case "reserved":
		return Words{"has reserved a piece", "预留了一件"}
	case "taken":
		return Words{"has sold it, and the row is not updated yet", "已卖出，数据行还没有更新"}
	case "compared":
		return Words{"has found its own value in the key, deletes it next", "确认键是自己的，接下来删除它"}
	case "unlocked":
		return Words{"has not committed yet", "还没有提交"}
	default:
		return Words{"is at this step", "到了这一步"}
	}
}

// frees reports whether a waiting client may acquire the lock when the other one is at the
// step.
func frees(step string) bool { return step == "released" || step == "unlocked" }

// waits describes a client that is neither stopped nor answered.
func waits() Words { return Words{"waits for the lock", "在等锁"} }

// told returns the answer of the service.
func told(op history.Op) Words {
	if op.Outcome == history.OK && !op.HasRemaining {
		return Words{"answer: sold", "得到答复：已售出"}
	}
	if op.Outcome == history.OK {
		return Words{fmt.Sprintf("answer: sold, %d left", op.Remaining), fmt.Sprintf("得到答复：已售出，剩 %d", op.Remaining)}
	}
	why := strings.TrimSuffix(op.Reason+": "+op.Detail, ": ")
	return Words{"answer: " + why, "得到答复：" + why}
}

// sentence says how a round ended.
func sentence(stock check.Conservation) Words {
	end := Words{
		fmt.Sprintf("%d sold, %d left of %d: ", stock.Sold, stock.Remaining, stock.Initial),
		fmt.Sprintf("原有 %d，售出 %d，剩 %d：", stock.Initial, stock.Sold, stock.Remaining),
	}
	say := func(en, zh string) Words { return Words{end.EN + en, end.ZH + zh} }
	switch lost := stock.Lost(); {
	case lost == 1:
		return say("an update was lost.", "丢失了一次更新。")
	case lost > 1:
		return say(fmt.Sprintf("%d updates were lost.", lost), fmt.Sprintf("丢失了 %d 次更新。", lost))
	case stock.Verdict == check.Holds:
		return say("no update was lost.", "没有丢失更新。")
	case stock.Verdict == check.Broken:
		return say("pieces are gone from the row that no client bought.", "数据行里少了没人买走的货。")
	default:
		return say("it is unknown whether an update was lost.", "是否丢失了更新，没人能说清。")
	}
}
