package redislock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

// onceHook keeps the client of a cluster from sending a command again after a connection has broken: the
// node may have executed it. The client still follows MOVED and ASK, because a node that answers so has
// executed nothing, and still tries again if it reached no node. Then it also asks for the new masters.
//
// DANGER: MaxRetries does not do this. The client of a cluster counts redirections and repetitions
// together, in MaxRedirects.
type onceHook struct{ reload func(context.Context) }

// once is a command that is sent once.
type once struct{ redis.Cmder }

// NoRetry is true if a node may have received the command, see onceHook.
func (c once) NoRetry() bool { return c.Err() == nil || locks.Sent(c.Err()) }

// DialHook changes nothing.
func (onceHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command once.
func (h onceHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, once{cmd})
		var answer redis.Error
		if err != nil && !errors.As(err, &answer) {
			h.reload(ctx)
		}
		return err
	}
}

// ProcessPipelineHook sends the commands of a pipeline or a transaction once.
func (onceHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		all := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			all[i] = once{cmd}
		}
		return next(ctx, all)
	}
}
