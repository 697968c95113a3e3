package cli

import (
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
