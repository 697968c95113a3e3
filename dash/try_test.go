package dash_test

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTrySemaphoreWaves: ten requests for three permits hold them three at a time. On a busy machine, a request
// of a wave may begin its hold late, and so the waves may overlap.
func TestTrySemaphoreWaves(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	var starts, lengths []float64 // of each hold, in per cent of the axis
	do(t, tab,
		chromedp.Navigate(address("/dash/course/primitives")),
		reads(`#part-places`, "No requests yet"),
		setValue(`input[name=name]`, "waves"),
		press(`#try-semaphore summary`),
		setValue(`[name=wait]`, "60000"), // on a busy machine, all must have their turn
		recordParts(),
		press(`button[value="permit:10"]`),
		showed("part-places", "●●●"),
		showed("part-places", "waiting 7"),
		showed("part-places", "holding"),
	)
	pictures(t, tab, "try")
	accessible(t, tab, axe(t), "requests that wait")
	do(t, tab,
		reads(`#part-places li:nth-child(10).gone`, "released"),
		chromedp.Poll(`document.querySelectorAll('#part-places .gone').length === 10`, nil),
		reads(`#part-places`, "○○○"),
		chromedp.Evaluate(`[...document.querySelectorAll('#part-places rect.holds')].map(r => parseFloat(r.getAttribute('x')))`, &starts),
		chromedp.Evaluate(`[...document.querySelectorAll('#part-places rect.holds')].map(r => parseFloat(r.getAttribute('width')))`, &lengths),
	)
	if !slices.IsSorted(starts) {
		t.Errorf("the rows are not in the order of entry: %v", starts)
	}
	if len(starts) != 10 || starts[2] > starts[0]+lengths[0] {
		t.Fatalf("holds begin at %v: want ten, and the first three at a time", starts)
	}
	// No hold is shorter than its request has asked for, and the shortest one is hardly longer.
	for shortest, i := slices.Min(lengths), 3; i < len(starts); i++ {
		if starts[i] < starts[i-3]+0.8*shortest {
			t.Errorf("four hold at %.1f %%: the holds begin at %v, and last %v", starts[i], starts, lengths)
		}
	}
}

// TestTryTheOthersInChinese uses all primitives except the semaphore, on the page in Chinese. The
// members of a double barrier enter together and leave together.
func TestTryTheOthersInChinese(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t, "zh-CN")
	open := func(primitive string) chromedp.Action {
		return press(`#try-` + primitive + ` summary`)
	}
	press := func(send string) chromedp.Action {
		return press(`button[value="` + send + `"]`)
	}
	do(t, tab,
		chromedp.Navigate(address("/dash/course/primitives")),
		setValue(`input[name=name]`, "others"),
		setValue(`select[name=backend]`, "zk"),
		open("double-barrier"),
		press("enter:3"), reads(`#part-places`, "已进入 3"),
		press("leave:3"), reads(`#part-places`, "与其他成员一起离开"),
		open("latch"),
		press("latch:3"), reads(`#notice`, "闭锁只有后端 redis"),
		setValue(`select[name=backend]`, "redis"),
		press("latch:3"), reads(`#part-places`, "等待中 3"),
		press("countdown:3"), reads(`#part-places`, "还要倒数 3"),
		press("countdown:3"), reads(`#part-places`, "闭锁已打开"),
		setValue(`select[name=backend]`, "zk"),
		open("barrier"),
		press("barrier-set:1"), reads(`#part-places`, "屏障已设置"),
		press("barrier-wait:3"), reads(`#part-places .waiting`, "等待中"),
		press("barrier-remove:1"), reads(`#part-places`, "通过了屏障"),
		open("counter"),
		press("increment:10"), reads(`#part-places`, "改成了"),
		open("read-write"),
		// Long enough that the page shows all three at the same time, also on a busy machine.
		setValue(`[name=hold]`, "10000"),
		press("read:3"), reads(`#part-places`, "正在读 3"),
		press("write:1"), reads(`#part-places`, "正在写 1"),
	)
	pictures(t, tab, "try-zh")
}

// TestTryByHand: an owner locks twice and unlocks twice. Another owner cannot unlock the lock, and a
// lock with a lease ends by itself.
func TestTryByHand(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	value := func(name, value string) chromedp.Action {
		return setValue(`[name=`+name+`]`, value)
	}
	do(t, tab,
		chromedp.Navigate(address("/dash/course/primitives")),
		value("name", "by-hand"),
		press(`#try-lock summary`),
		tabTo(`button[value="lock:1"]`), keys(kb.Enter), reads(`#part-places`, "locks that are held 1"),
		press(`button[value="lock:1"]`), reads(`#part-places`, "locks that are held 2"),
		value("owner", "B"),
		press(`button[value="unlock:1"]`), reads(`#part-places`, "this owner does not hold the lock"),
		value("owner", "A"),
		press(`button[value="unlock:1"]`), reads(`#part-places`, "unlocked, count 1"),
		press(`button[value="unlock:1"]`), reads(`#part-places`, "unlocked, count 0"),
		value("lease", "1000"),
		press(`button[value="lock:1"]`), reads(`#part-places`, "its lease has ended"),
		value("lease", "0"), value("name", "primitives-by-hand"), value("backend", "zk"),
		press(`button[value="write-lock:1"]`), reads(`#part-places`, "zk write primitives-by-hand:\nlocks that are held 1"),
		press(`button[value="write-unlock:1"]`), reads(`#part-places`, "zk write primitives-by-hand:\nlocks that are held 0"),
		press(`button[value="read-lock:1"]`), reads(`#part-places`, "zk read primitives-by-hand:\nlocks that are held 1"),
		press(`button[value="write-lock:1"]`), reads(`#part-places`, "a reader cannot become a writer"),
		press(`button[value="read-unlock:1"]`), reads(`#part-places`, "zk read primitives-by-hand:\nlocks that are held 0"),
		press(`button[value="acquire:3"]`), reads(`#part-places`, "zk semaphore primitives-by-hand:\nlocks that are held 3"),
		press(`button[value="release:1"]`), reads(`#part-places`, "zk semaphore primitives-by-hand:\nlocks that are held 2"),
	)
	inView(t, tab, `.lanes [data-verdict]`, "light", "dark")
	pictures(t, tab, "try-lock")
}

// TestTryOptions uses then=, qty, and the operations of the counter.
func TestTryOptions(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	value := func(name, value string) chromedp.Action {
		return setValue(`[name=`+name+`]`, value)
	}
	do(t, tab,
		chromedp.Navigate(address("/dash/course/primitives")),
		value("name", "options"),
		press(`button[value="upgrade:1"]`), reads(`#part-places`, "a reader cannot become a writer"),
		press(`button[value="write-read:1"]`), reads(`#part-places`, "writers that hold the lock 1"),
		reads(`#part-places li.gone`, "released"), // the writer: the reader was rejected
		press(`button[value="downgrade:1"]`), reads(`#part-places`, "readers that hold the lock 1"),
		press(`#try-semaphore summary`), value("qty", "2"),
		press(`button[value="permit:1"]`), reads(`#part-places`, "taken 2 / 3"),
		press(`#try-counter summary`), value("backend", "zk"),
		value("value", "71"),
		press(`button[value="force-set:1"]`), reads(`#part-places`, "changed it to 71"),
		press(`button[value="compare-and-set:1"]`), reads(`#part-places`, "not changed: it is 71"),
		value("expect", "71"), value("value", "72"),
		press(`button[value="compare-and-set:1"]`), reads(`#part-places`, "changed it to 72"),
		press(`button[value="subtract:1"]`), reads(`#part-places`, "changed it to 0"),
		value("version", "99"),
		press(`button[value="compare-version:1"]`), reads(`#part-places`, "not changed: it is 0"),
	)
}

// TestPrimitivePage: the lesson leads to the page of each primitive, which shows its code.
func TestPrimitivePage(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t, "zh-CN")
	do(t, tab,
		chromedp.Navigate(address("/dash/course/primitives")),
		press(`a[href="/dash/learn/primitives/read-write"]`),
		reads(`h1`, "读写锁"),
		reads(`main`, "locks/redislock/read_write.go"),
		reads(`main`, "locks/zklock/read_write.go"),
		chromedp.Navigate(address("/dash/learn/primitives/none")),
		reads(`main`, "没有同步原语"),
	)
}
