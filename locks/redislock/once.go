package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// onceHook keeps the client of a cluster from sending a command again after a connection has broken: the
// node may have executed it. The client still follows MOVED and ASK, because a node that answers so has
// executed nothing.
//
// DANGER: MaxRetries does not do this. The client of a cluster counts redirections and repetitions
// together, in MaxRedirects.
type onceHook struct{}

// once is a command that is sent once.
type once struct{ redis.Cmder }

// NoRetry is true, see onceHook.
func (once) NoRetry() bool { return true }

// DialHook changes nothing.
func (onceHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command once.
func (onceHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, once{cmd}) }
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
