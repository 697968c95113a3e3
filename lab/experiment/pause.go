package experiment

import (
	"context"
	"slices"

	"oversell/api"
)

// pause freezes the holder's process after its last check of the lock, until its lease has ended.
func pause() Experiment {
	return Experiment{
		Hazard: "pause", Group: holderFails, Basic: true, Applies: always, Fenced: true,
		Title: api.Text{EN: "the holder pauses past the end of its lease, then writes", ZH: "持锁者停顿超过租期后继续写入"},
		Shows: api.Text{EN: "two holders, and the late write wins", ZH: "两个持锁者，迟到的写入覆盖了别人的写入"},
		step:  "writing", contenderParams: wait(grantBound),
		inject: freezeHolders, meanwhile: leasesEnd, lapse: pauseLapse(),
	}
}

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

// pauseLapse says what happened when a holder wrote after a pause beyond its lease.
func pauseLapse() api.Text {
	return api.Text{EN: "The holder's lease expired during the pause, and it wrote anyway.", ZH: "停顿期间租期已过，持锁者醒来仍然写入。"}
}

// leasesEnd waits until the leases of strategies that are not locks have ended. With a lock, the
// grant to the next holder shows that the lease has ended.
func leasesEnd(ctx context.Context, r *round) error {
	if !slices.ContainsFunc(r.participants, func(p *participant) bool { return p.Card.Lease && !p.Card.Locker }) {
		return nil
	}
	return sleep(ctx, r.injectedAt+Lease-r.bed.since())
}
