package handlers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"oversell/api"

	"github.com/gin-gonic/gin"
)

const (
	// maxStreams bounds the open event streams of strangers: each costs every sale some
	// time. The lab's own, which carry its token, are not counted.
	maxStreams = 16
	// writeTime bounds one write to a client that does not read.
	writeTime = 10 * time.Second
)

// timely is a response whose every write has writeTime. One deadline for the whole answer
// would end streams, and requests that wait for a lock.
type timely struct {
	gin.ResponseWriter
	control *http.ResponseController
}

func (w timely) Write(text []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.Write(text)
}

// Unwrap lets an http.ResponseController find the connection.
func (w timely) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w timely) WriteString(text string) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.WriteString(text)
}

func boundWrites(c *gin.Context) {
	w := timely{c.Writer, http.NewResponseController(c.Writer)}
	_ = w.control.SetWriteDeadline(time.Time{}) // of the last answer on this connection
	c.Writer = w
}

// mayStream counts a stream until leave, or answers that there are enough of them.
func (s *Service) mayStream(c *gin.Context) (leave func(), ok bool) {
	if s.hasToken(c) {
		return func() {}, true
	}
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, true
	default:
		s.problem(c, api.Problem{
			Status: http.StatusServiceUnavailable, Outcome: api.TooManyStreams,
			Detail: fmt.Sprintf("%d event streams are open on this replica, which is the most: end one of them, or send the lab's token in the header X-Lab-Token", maxStreams),
		})
		return nil, false
	}
}

// stream sends events as server-sent events until there are no more, or ctx or the service
// ends. A comment every ten seconds shows that the connection is alive.
func stream[T any](ctx context.Context, s *Service, c *gin.Context, events <-chan T, send func(T)) {
	alive := time.NewTicker(10 * time.Second)
	defer alive.Stop()
	c.Stream(func(w io.Writer) bool {
		select {
		case e, more := <-events:
			if !more {
				return false
			}
			send(e)
			for range len(events) { // these go out in the same packet
				send(<-events)
			}
		case <-alive.C:
			_, _ = io.WriteString(w, ": alive\n\n")
		case <-s.events.closed:
			return false
		case <-ctx.Done():
			return false
		}
		return true
	})
}
