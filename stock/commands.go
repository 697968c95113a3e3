package stock

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// maxCommands limits the commands that Commands keeps. A request that polls sends thousands.
	maxCommands = 16
	// longestCycle is the largest number of commands whose repetition is counted.
	longestCycle = 3
	// maxCommand limits the length of a kept command, in characters.
	maxCommand = 200
)

var random = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Commands records the commands that one request sends to its backends, so that a class can see
// them. The clients of all backends call Sent. See Watch.Commands.
type Commands struct {
	mu      sync.Mutex
	sent    []command
	dropped int // number of commands that are left out in the middle of sent
}

type command struct {
	text  string
	times int // the number of times that it was sent, alone or in a cycle with the commands beside it
}

// WithoutCommands returns a context for background work, such as the renewals of a lease. Commands
// of background work are not recorded.
func WithoutCommands(ctx context.Context) context.Context {
	w := WatchOf(ctx)
	if w.Commands == nil {
		return ctx
	}
	w.Commands = nil
	return WithWatch(ctx, w)
}

// Sent records a command that is about to be sent, on one line, with "…" for each UUID. It calls text
// only if ctx records commands.
func Sent(ctx context.Context, text func() string) {
	if c := WatchOf(ctx).Commands; c != nil {
		line := strings.Join(strings.Fields(WithoutTokens(text())), " ")
		c.add(Shorten(line, maxCommand))
	}
}

// WithoutTokens replaces the UUIDs of a command by "…". They make a command hard to read, and are
// different in each request.
func WithoutTokens(command string) string { return random.ReplaceAllLiteralString(command, "…") }

// Shorten returns at most n characters of text. If it leaves out the rest, it adds "…".
func Shorten(text string, n int) string {
	if letters := []rune(text); len(letters) > n {
		return string(letters[:n]) + "…"
	}
	return text
}

func (c *Commands) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, command{text, 1})
	for n := 1; n <= longestCycle; n++ {
		if rest := len(c.sent) - n; rest >= n && slices.EqualFunc(c.sent[rest-n:rest], c.sent[rest:], command.equal) {
			for i := range n {
				c.sent[rest-n+i].times++
			}
			c.sent = c.sent[:rest]
			break
		}
	}
	if len(c.sent) > maxCommands {
		c.dropped += c.sent[maxCommands/2].times
		c.sent = slices.Delete(c.sent, maxCommands/2, maxCommands/2+1)
	}
}

func (c command) equal(other command) bool { return c.text == other.text }

// List returns the commands since the last Clear, in the order of their sending.
func (c *Commands) List() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.sent {
		if i == maxCommands/2 && c.dropped > 0 {
			list = append(list, fmt.Sprintf("… (%d)", c.dropped))
		}
		if s.times > 1 {
			s.text += fmt.Sprintf(" (× %d)", s.times)
		}
		list = append(list, s.text)
	}
	return list
}

// Clear removes all commands.
func (c *Commands) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.dropped = nil, 0
}
