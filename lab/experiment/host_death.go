package experiment

import (
	"context"
	"errors"

	"oversell/api"
	"oversell/lab/fault"
)

// hostDeath silences all links of the holder's replica, and kills its process. Unlike after crash, no server receives the
// end of a connection, so a lock that belongs to a connection stays held until the server's own time-outs.
func hostDeath() Experiment {
	late := stalled(api.Textf(
		"The holder's machine died, and its connections stayed open: no request acquired the lock within %v.",
		"持锁者的机器掉电，它的连接仍然打开：%v 内没有请求拿到锁。", grantBound))
	return Experiment{
		Hazard: "host-death", ClaimedAs: "crash", Group: linkFails, Applies: always,
		Title: api.Text{EN: "the holder's machine loses its power, or its network", ZH: "持锁者的主机掉电或断网"},
		Shows: api.Text{EN: "its connections stay open at the servers; is a lock of a connection freed?", ZH: "它的连接在服务器上仍然打开，属于连接的锁会释放吗？"},
		step:  "granted", contenderParams: wait(grantBound), inject: silenceAndKill,
		judge: func(p *participant) *finding {
			if p.stopped[holder] == "" { // it had sold before, and its host died with nothing to lose
				return neverStopped()
			}
			return mustSellInTime(late)(p)
		},
	}
}

func silenceAndKill(ctx context.Context, r *round) (fault.Heal, error) {
	restore, err := cutOff(append(anyServer, "pgbouncer")...)(ctx, r)
	if err != nil {
		return restore, err
	}
	silent := r.faults
	restart, err := killReplica(holder)(ctx, r)
	r.faults = silent // the end of a connection that a link has dropped shows that the process has died, too
	return func(ctx context.Context) error {
		// The replica starts again only if it reaches its servers.
		return errors.Join(restore(ctx), restart(ctx))
	}, err
}
