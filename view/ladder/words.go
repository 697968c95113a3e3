package ladder

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"oversell/lab/history"
	"oversell/lab/measure"
)

// chinese translates words. Names, such as a step of only one strategy, have no translation.
var chinese = map[string]string{ //nolint:gochecknoglobals // a dictionary, never written
	"lock": "锁", "stock": "库存", "no replica": "没有副本", "lease ends": "租期结束", "lock lost": "锁已丢失",
	"process frozen": "进程停顿", "killed": "被杀死", "restarted": "重启", "locks deleted": "锁被删除", "session expired": "会话已过期", "two nodes": "两个节点", "replication held": "复制被暂停",
	"failover": "主从切换", "command held back": "命令被扣住", "statement held back": "语句被扣住", "unreplicated": "未复制", "quorum-loss": "失去多数", "split": "网络分区",

	"no answer seen": "没有看到应答", "sold": "已售", "sold out": "售完", "not acquired": "没有拿到锁", "unavailable": "不可用",
	"refused, the lock is lost": "被拒绝，锁已丢失", "refused, its fence is old": "被拒绝，栅栏号已旧", "conflict": "冲突", "cancelled": "已取消", "unknown": "不明",
	"unreachable": "连不上", "timeout": "超时", "connection broken": "连接中断", "interrupted": "被打断",
	"held": "持有过", "not held": "未持有", "expired": "租期已过", "entered": "已进入", "left": "已离开", "counted": "已计数", "changed": "已修改", "unchanged": "未修改",
}

// lang is the language of a picture: en or zh.
type lang string

func (l lang) word(english string) string {
	if word, ok := chinese[english]; ok && l == "zh" {
		return word
	}
	return english
}

// fault returns the name of a fault.
func (t Recorded) fault(english string) string {
	if t.lang == "zh" {
		for _, f := range []struct{ en, zh string }{
			{"cut from ", "与 %s 的连接被切断"}, {"reset by ", "%s 重置连接"}, {"lost reply of ", "%s 的应答丢失"}, {"clock jumps by ", "时钟跳了 %s"}, {"slow answers of ", "%s 的应答变慢"},
		} {
			if rest, ok := strings.CutPrefix(english, f.en); ok {
				return fmt.Sprintf(f.zh, rest)
			}
		}
	}
	plain := map[string]string{"stop": "process frozen", "stopped": "process frozen", "kill": "killed", "restart": "restarted"}[english]
	return t.word(cmp.Or(plain, english))
}

// say returns a sentence in the language. Both formats must have the same verbs.
func (l lang) say(en, zh string, values ...any) string {
	if l == "zh" {
		return fmt.Sprintf(zh, values...)
	}
	return fmt.Sprintf(en, values...)
}

// Left says how many requests the picture leaves out.
func (t Recorded) Left() string {
	if t.left == 0 {
		return ""
	}
	return t.say("%d more requests are not shown.", "还有 %d 个请求没有画出。", t.left)
}

func (t *task) fences() string {
	var seen []string
	last := int64(0)
	for _, e := range t.events {
		if fence := fenceOf(e); fence > 0 && fence != last {
			last = fence
			seen = append(seen, strconv.FormatInt(last, 10))
		}
	}
	return strings.Join(seen, ", ")
}

// fenceOf returns the fencing token of a step that a holder takes, and 0 for all other steps. At the
// step queued, e.Fence is not a token, but the position in the queue.
func fenceOf(e history.Event) int64 {
	switch e.Step {
	case "granted", "read", "writing", "written", "released":
		return e.Fence
	}
	return 0
}

func (t Recorded) answer(task *task) string {
	if task.op == nil {
		return t.word("no answer seen")
	}
	reason := map[string]string{"lost": "refused, the lock is lost", "fenced": "refused, its fence is old"}[task.op.Reason]
	reason = cmp.Or(reason, strings.ReplaceAll(task.op.Reason, "_", " "))
	words := map[history.Outcome]string{history.OK: "✓ ", history.Refused: "✗ ", history.Unknown: "? "}[task.op.Outcome] +
		t.word(reason)
	if task.op.HasRemaining {
		words += t.say(", %d left", "，剩 %d", task.op.Remaining)
	}
	return words
}

func (t Recorded) title() string {
	requests := len(t.tasks) + t.left
	return t.say("%[1]s: %[4]s in %.3[3]f s", "%[1]s：%[2]d 个请求，%.3[3]f 秒",
		t.strategy, requests, (t.to - t.from).Seconds(), measure.Count(requests, "request", "requests"))
}
