package grade

import (
	"slices"

	"oversell/api"
)

// Hint leads from a requirement that failed to the strategy whose lesson it is.
type Hint struct {
	Text     api.Text `json:"text"`
	Strategy string   `json:"strategy"` // of `oversell strategies`
	Lesson   string   `json:"lesson"`   // a file in docs/course
}

// hintFor returns the hint for a requirement, by its name.
func hintFor(name string) *Hint {
	for _, h := range append(basicHints(), laterHints()...) {
		if slices.Contains(h.of, name) {
			return &h.Hint
		}
	}
	return nil
}

// hint is the hint of these requirements.
type hint struct {
	of []string
	Hint
}

// The lessons of the course that hints name.
const (
	locks    = "06-first-redis-locks.md"
	scripts  = "07-scripts.md"
	renewal  = "08-renewal-and-redlock.md"
	redisson = "09-redisson-locks.md"
)

// basicHints are those of exercises 1 to 3.
func basicHints() []hint {
	return []hint{
		{[]string{"keys"}, Hint{api.Text{
			EN: "Each key is a lock of its own. Use the key of the request in the name of the key in Redis.", ZH: "每个 key 是一把独立的锁。Redis 中的键名要包含请求里的 key。",
		}, "redis-setnx", locks}},
		{[]string{"time-out"}, Hint{api.Text{
			EN: "A held lock must refuse others: create the key only if it does not exist. A waiter tries again until wait_ms is over, and answers not_acquired then; with 0 it tries once. A release frees the key.",
			ZH: "锁被持有时必须拒绝别人：只在键不存在时创建它。等待者不断重试，直到 wait_ms 用完才回答 not_acquired；为 0 时只试一次。释放要删除键。",
		}, "redis-setnx", locks}},
		{[]string{"exclusion", "exclusion-across", "race", "replica-race"}, Hint{api.Text{
			EN: "Two requests held the lock at the same time. Check and create the key in one command, on a server that all processes share.",
			ZH: "两个请求同时持有锁。检查和创建键要用同一条命令，而且键要放在所有进程共用的服务器上。",
		}, "redis-setnx", locks}},
		{[]string{"cancellation", "clean-up"}, Hint{api.Text{
			EN: "After cancel, the acquire must end at once, and it must leave neither a lock nor a waiter behind. A free lock must reach the next waiter.",
			ZH: "收到 cancel 后，acquire 必须立刻结束，不留下锁，也不留下等待者。锁空闲之后要轮到下一个等待者。",
		}, "redis-expire", locks}},
		{[]string{"crash", "unnoticed-expiry"}, Hint{api.Text{
			EN: "A holder that dies never releases its lock. Give the key an expiry, which the server counts.", ZH: "持有者死掉之后不会再释放锁。给键设置过期时间，由服务器计时。",
		}, "redis-expire", locks}},
		{[]string{"crash-between"}, Hint{api.Text{
			EN: "SETNX and EXPIRE are two commands, and the process may die between them. SET with NX and PX is one.", ZH: "SETNX 和 EXPIRE 是两条命令，进程可能死在中间。带 NX 和 PX 的 SET 是一条命令。",
		}, "redis-setnx-expire", locks}},
		{[]string{"release", "foreign-unlock"}, Hint{api.Text{
			EN: "A release frees its lock at once and wakes a waiter. It may free only its own lock, and works once. Store a value that no other acquisition has, and compare it before you delete the key.",
			ZH: "释放要立刻解锁，并让等待者拿到锁。它只能解除自己的锁，而且只生效一次。存一个别人没有的值，删除之前先比较。",
		}, "redis-uuid", locks}},
		{[]string{"late-release"}, Hint{api.Text{
			EN: "Between GET and DEL the lease can end, and another request can acquire the lock. Compare and delete in one script.",
			ZH: "在 GET 和 DEL 之间，租期可能到期，锁可能已属于别人。把比较和删除放进同一个脚本。",
		}, "redis-lua", scripts}},
	}
}

// laterHints are those of exercises 4 to 10.
func laterHints() []hint {
	return []hint{
		{[]string{"re-entry", "nesting"}, Hint{api.Text{
			EN: "Store the owner and a count in a hash. The same owner increments the count, each release decrements it, and the last one deletes the key.",
			ZH: "在 hash 里存持有者和计数。同一持有者加锁时加一，每次释放减一，减到零才删除键。",
		}, "redis-reentrant", scripts}},
		{[]string{"renewal", "overrun"}, Hint{api.Text{
			EN: "Renew the lease every third of its time until the release, but only if the key still has your value.", ZH: "每过三分之一租期续期一次，直到释放；续期之前要确认键里还是自己的值。",
		}, "redis-watchdog", renewal}},
		{[]string{"renewal-end"}, Hint{api.Text{
			EN: "A renewal that goes on after its release, or that does not compare the value, keeps the lock of a dead holder alive.", ZH: "释放之后仍在续期，或者续期时不比较值，会让死者的锁永不过期。",
		}, "redis-watchdog", renewal}},
		{[]string{"expiry", "no-renewal", "loss-notice", "late-receipt", "cutoff", "late-answer"}, Hint{api.Text{
			EN: "A holder must notice that its lock is lost. Count the lease from the time before the command was sent. Answer verify from this time and from the last renewal, and send lost.",
			ZH: "持有者必须发现锁已丢失。租期要从发出命令之前算起。verify 要根据这个时间和最近一次续期来回答，并主动发送 lost。",
		}, "redis", renewal}},
		{[]string{"polling", "herd"}, Hint{api.Text{
			EN: "Waiters must not ask again and again. Let the release publish a message, and wake one waiter.", ZH: "等待者不要反复询问。释放时发布消息，只唤醒一个等待者。",
		}, "redis", redisson}},
		{[]string{"order", "dead-waiter"}, Hint{api.Text{
			EN: "Put the waiters into one queue on the server, and grant the lock to the first only. Remove waiters that have died.", ZH: "把等待者放进服务器上的同一个队列，只让队首拿锁，并清除已经死掉的等待者。",
		}, "redis-fair", redisson}},
		{[]string{"failover", "minority-loss", "majority-loss", "partition"}, Hint{api.Text{
			EN: "One Redis forgets the lock when it fails. Ask five independent Redis, and hold the lock only with three of them or more, within the lease.",
			ZH: "单个 Redis 出故障时会忘记锁。向五个独立的 Redis 加锁，在租期内至少有三个成功才算持有。",
		}, "redlock", renewal}},
		{[]string{"fence", "fenced-write", "pause --fenced", "pause-at-read --fenced"}, Hint{api.Text{
			EN: "A paused holder writes late, and only the stock can reject it. Take the fence from a counter on the server, in the step that grants the lock: it must rise with each grant, in all processes.",
			ZH: "停顿的持有者会迟写，只有库存能拒绝它。栅栏令牌取自服务器上的计数器，和加锁在同一步完成：每次加锁都要更大，所有进程共用。",
		}, "redis", renewal}},
	}
}
