package handlers

import (
	"context"
	"io"
	"net/http"
	"time"

	"oversell/api"

	"github.com/gin-gonic/gin"
)

const (
	// maxStreams limits streams without the lab's token, because each stream slows down every sale.
	maxStreams = 16
	// writeTime limits one write to a client that does not read its stream.
	writeTime = 10 * time.Second
)

// timedWriter limits the time of each write. A limit per response would end streams and lock waits.
type timedWriter struct {
	gin.ResponseWriter
	control *http.ResponseController
}

func (w timedWriter) Write(text []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.Write(text)
}

// Unwrap returns the writer in which an http.ResponseController finds the connection.
func (w timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w timedWriter) WriteString(text string) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.WriteString(text)
}

func boundWrites(c *gin.Context) {
	w := timedWriter{c.Writer, http.NewResponseController(c.Writer)}
	_ = w.control.SetWriteDeadline(time.Time{}) // removes the previous request's deadline
	c.Writer = w
}

// openStream fails if too many streams are open. It does not count those with the lab's token.
func (s *Service) openStream(c *gin.Context) (leave func(), err error) {
	c.Header("Cache-Control", "no-store")
	c.Header("X-Accel-Buffering", "no") // nginx must send each event at once
	if s.hasToken(c) {
		return func() {}, nil
	}
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, nil
	default:
		return nil, refuse(http.StatusServiceUnavailable, api.TooManyStreams,
			"this replica has reached its limit of %d event streams: close one, or send the lab's token in the header %s",
			"这个副本的事件流已达上限 %d 个：请关闭一个，或者在请求头 %s 里给出实验室的访问口令", maxStreams, api.TokenHeader)
	}
}

// stream sends the events, and an SSE comment every ten seconds to keep the connection open.
func stream[T any](ctx context.Context, s *Service, c *gin.Context, events <-chan T, send func(T)) {
	alive := time.Tick(10 * time.Second)
	c.Stream(func(w io.Writer) bool {
		select {
		case e, more := <-events:
			if !more {
				return false
			}
			send(e)
			for range len(events) { // the waiting events go into the same packet
				send(<-events)
			}
		case <-alive:
			_, _ = io.WriteString(w, ": alive\n\n")
		case <-s.events.closed:
			return false
		case <-ctx.Done():
			return false
		}
		return true
	})
}
