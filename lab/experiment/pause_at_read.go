package experiment

import "oversell/api"

// pauseAtRead puts the holder's late write between the contender's read and write. If a fencing
// token is not registered in the row before the read, the row accepts both writes.
func pauseAtRead() Experiment {
	e := pause()
	e.Hazard, e.ClaimedAs, e.Basic = "pause-at-read", "pause", false
	e.Title = api.Text{
		EN: "the holder pauses past the end of its lease, and writes between the contender's read and write",
		ZH: "持锁者停顿超过租期，恢复时另一个请求已读取、尚未写入",
	}
	e.Shows = api.Text{
		EN: "the contender overwrites the late write, and both have sold the same piece",
		ZH: "迟到的写入又被覆盖，同一件卖了两次",
	}
	e.contenderStops = "read"
	return e
}
