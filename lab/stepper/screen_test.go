package stepper

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/history"
	"oversell/view/terminal"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	sold := history.Op{Outcome: history.OK, Qty: 1, Remaining: 9, HasRemaining: true}
	r := &Round{
		lab: &Lab{Strategy: "redis"}, Row: 9,
		clients: [2]*clientState{{state: Ended, op: sold}, {state: Stopped}},
		Log: []Entry{
			{Client: A, Step: "granted", Text: api.Text{EN: "has the lock, fence 1"}, Row: 10, Commands: []string{"EVALSHA acquire.lua 2 redis:stock:1 redis:fence:stock:1 replica-1-1 60000"}},
			{Client: B, Step: "asked", Text: api.Text{EN: "wants the lock"}, Row: 10},
			{Client: B, Text: waits(), Row: 10},
			{Client: A, Text: answer(sold), Row: 9, Commands: []string{"COMMIT"}},
			{Client: B, Step: "compared", Text: api.Text{EN: "has found its own value in the key, and is about to delete the key"}, Row: 9},
		},
	}
	const want = `redis: A and B buy one piece each; the stock is 10

  A, on replica-1                         B, on replica-2
  ----------------------------------      ----------------------------------
    granted     has the lock, fence 1       asked       wants the lock
      $ EVALSHA acquire.lua 2               waits for the lock
        redis:stock:1                     > compared    has found its own value
        redis:fence:stock:1 replica-1-1       in the key, and is about to delete
        60000                                 the key
    answer: sold, 9 left
      $ COMMIT

  stock in the database: 9
`
	if got := drawn(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.clients[B].state, r.clients[B].op = Ended, sold
	if got := drawn(t, r); !strings.HasSuffix(got, "\n  stock in the database: 9\n  ✗ 2 sold, 9 left of 10: an update was lost.\n") {
		t.Errorf("at the end:\n%s", got)
	}
}

func drawn(t *testing.T, r *Round) string {
	t.Helper()
	var text strings.Builder
	r.Draw(&text, terminal.Screen{})
	return text.String()
}

func TestSentence(t *testing.T) {
	t.Parallel()
	sold := history.Op{Outcome: history.OK, Qty: 1}
	refused := history.Op{Outcome: history.Refused, Qty: 1}
	unknown := history.Op{Outcome: history.Unknown, Qty: 1}
	for _, c := range []struct {
		a, b history.Op
		row  int
		want string
	}{
		{sold, sold, 8, "2 sold, 8 left of 10: no update was lost."},
		{sold, sold, 9, "2 sold, 9 left of 10: an update was lost."},
		{sold, sold, 10, "2 sold, 10 left of 10: 2 updates were lost."},
		{sold, refused, 9, "1 sold, 9 left of 10: no update was lost."},
		{refused, refused, 9, "0 sold, 9 left of 10: the stock fell by more than was sold."},
		{sold, unknown, 9, "1 sold, 9 left of 10: inconclusive, because an answer is missing."},
	} {
		r := &Round{Row: c.row, clients: [2]*clientState{{state: Ended, op: c.a}, {state: Ended, op: c.b}}}
		if got := r.Node().End.Text; got.EN != c.want || got.ZH == "" {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
