package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"oversell/lab/rig"
)

func TestPrintError(t *testing.T) {
	t.Parallel()
	_, unknown := cardsOf([]string{"rediss"})
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{nil, 0, ""},
		{errors.New("no disk"), 1, "oversell: no disk\n"},
		{usage("no strategy"), 2, "oversell: no strategy\n"},
		{&exit{1, nil}, 1, ""}, // the output already has the reason
		{unknown, 1, "oversell: strategy \"rediss\" does not exist; did you mean \"redis\"? List them: bin/oversell strategies\n"},
		{fmt.Errorf("lab: %w", rig.ErrMissing), 1, "oversell: lab: " + rig.ErrMissing.Error() + "\n" + strings.ReplaceAll(noServers, "oversell", "bin/oversell") + "\n"},
		{errors.Join(&exit{2, nil}, errors.New("no disk")), 2, "oversell: no disk\n"},
	} {
		var text strings.Builder
		if status := printError(&text, "bin/oversell", c.err); status != c.status || text.String() != c.text {
			t.Errorf("%v: status %d, %q, want %d, %q", c.err, status, text.String(), c.status, c.text)
		}
	}
}

// TestConcluded checks the exit status of what experiments have found, also if Ctrl-C has ended them.
func TestConcluded(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	failed := errors.New("out of disk")
	for _, tt := range []struct {
		ctx                        context.Context //nolint:containedctx // of this case
		contradicted, inconclusive bool
		err                        error
		status                     int
		message                    string
	}{
		{t.Context(), false, false, nil, 0, ""},
		{t.Context(), false, true, nil, 2, ""},
		{t.Context(), true, true, nil, 1, ""},
		{t.Context(), false, true, failed, 1, "out of disk"},
		{t.Context(), true, false, &exit{2, failed}, 1, "out of disk"},
		{stopped, false, true, stopped.Err(), 130, "stopped"},
		{stopped, true, true, errors.Join(stopped.Err(), failed), 1, "stopped\nout of disk"},
	} {
		var out strings.Builder
		status := printError(&out, "oversell", ended(tt.ctx, concluded(tt.contradicted, tt.inconclusive, tt.err)))
		if got := strings.TrimSpace(strings.TrimPrefix(out.String(), "oversell: ")); status != tt.status || got != tt.message {
			t.Errorf("%+v: %d, %q", tt, status, got)
		}
	}
}
