package stock_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"oversell/stock"
)

func send(ctx context.Context, commands ...string) {
	for _, c := range commands {
		stock.Sent(ctx, func() string { return c })
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, want string }{
		{"a b", "a b"},
		{"a b b b", "a b (× 3)"},
		{"a b a b a b c", "a (× 3) b (× 3) c"},
		{"a b a", "a b a"},
		{"0 1 2 3 4 5 6 7 8 9 a b c d e f g h", "0 1 2 3 4 5 6 7 … (2) a b c d e f g h"},
	} {
		commands := &stock.Commands{}
		ctx := stock.WithWatch(t.Context(), stock.Watch{Commands: commands})
		send(ctx, strings.Fields(c.sent)...)
		if got := strings.Join(commands.List(), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.sent, got, c.want)
		}
	}
}

func TestSent(t *testing.T) {
	t.Parallel()
	commands := &stock.Commands{}
	ctx := stock.WithWatch(t.Context(), stock.Watch{Commands: commands})
	send(stock.WithoutCommands(ctx), "a renewal")
	send(ctx, "GET\n\tlock:8ea753fb-d95d-407f-8ada-ef69b5d7cefc", strings.Repeat("x", 300))
	if got, want := commands.List(), []string{"GET lock:…", strings.Repeat("x", 200) + "…"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	commands.Clear()
	if got := commands.List(); len(got) > 0 {
		t.Errorf("%q after Clear", got)
	}
	stock.Sent(t.Context(), func() string { t.Error("the text is made without a recorder"); return "" })
}
