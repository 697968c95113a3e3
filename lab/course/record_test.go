package course_test

import (
	"testing"

	"oversell/lab/course"
)

// TestShort checks that Short drops the conditions of a run, and keeps the row of a strategy that
// has the name of a server.
func TestShort(t *testing.T) {
	t.Parallel()
	const printed = `starting a lab: MySQL, Redis
ready after 3 s: http://127.0.0.1:8080

✓ redis  no update lost

strategy  requests  sold   
redis         5000  5000

date     2026-01-02T03:04:05Z
load     100 clients x 50 requests, hold 0s, wait 10s,
         stock 5000
redis    7.0.15
zookeeper  3.8.0

Next: oversell break redis
`
	const want = `✓ redis  no update lost

strategy  requests  sold
redis         5000  5000

Next: oversell break redis`
	if got := course.Short(printed); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
