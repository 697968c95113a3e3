package redislock

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/stock"
)

// maxScript limits the characters of a script in a recorded command, if the script is in no file.
const maxScript = 40

// commandHook records the commands of a client, see stock.Commands. It replaces the SHA-1 or the
// text of a script by the name of its file.
type commandHook struct {
	scripts func() map[string]string // read at the first recorded command
}

func newCommandHook() commandHook { return commandHook{sync.OnceValue(Scripts)} }

// Scripts returns the names of the scripts' files by their SHA1.
func Scripts() map[string]string {
	scripts := map[string]string{}
	names, _ := fs.Glob(Source, "*.lua") // no error: the pattern is good
	for _, name := range names {
		text, _ := fs.ReadFile(Source, name) // no error: Glob has found it
		// Some scripts have a common first part, which is a file of its own.
		for _, script := range []string{string(text), fairHeadLua + string(text), evictsLua + string(text)} {
			scripts[redis.NewScript(script).Hash()] = name
		}
	}
	return scripts
}

// DialHook records nothing.
func (commandHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook records a command.
func (h commandHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.record(ctx, cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook records the commands of a pipeline or a transaction.
func (h commandHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.record(ctx, cmd)
		}
		return next(ctx, cmds)
	}
}

func (h commandHook) record(ctx context.Context, cmd redis.Cmder) {
	switch cmd.Name() {
	case "hello", "auth", "client", "select": // of a new connection, some with the password
		return
	}
	stock.Sent(ctx, func() string { return h.text(cmd) })
}

func (h commandHook) text(cmd redis.Cmder) string {
	var words []string
	for i, arg := range cmd.Args() {
		word := fmt.Sprint(arg)
		switch {
		case i == 0:
			word = strings.ToUpper(word)
		case i == 1 && cmd.Name() == "evalsha":
			word = h.name(word, word)
		case i == 1 && cmd.Name() == "eval":
			word = h.name(redis.NewScript(word).Hash(), word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (h commandHook) name(sha, unknown string) string {
	if file, ok := h.scripts()[sha]; ok {
		return file
	}
	return stock.Shorten(unknown, maxScript)
}
