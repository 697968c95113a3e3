package replica

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Follow listens to what happens on the replica until ctx ends or the replica does: a
// "hello" when it is heard, a "step" for each history.Event (but with the time of day), and
// "missed" when there were too many. Its client must have no time-out.
func (r Replica) Follow(ctx context.Context, heard func(kind string, data []byte)) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Base+"/events", nil)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	request.Header.Set("X-Lab-Token", r.Token) // strangers share a few streams
	response, err := r.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	kind, lines := "", bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "event":
			kind = strings.TrimSpace(value)
		case "data":
			heard(kind, []byte(value))
		}
	}
	return lines.Err()
}
