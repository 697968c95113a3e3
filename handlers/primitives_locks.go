package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// held is the answer of those who had something, worked and gave it back.
type held struct {
	done
	HeldMS float64 `json:"held_ms"`
	// Then is what the owner took besides, while it held.
	Then    string `json:"then,omitempty"`
	Permits int    `json:"permits,omitempty"`
	Qty     int    `json:"qty,omitempty"`
	Warning string `json:"warning,omitempty"`
}

func hasReadWrite(p locks.Primitives) bool { return p.ReadWrite != nil }

// testRead holds the read lock for a while (3.9.5, 4.6.3). Readers don't wait
// for each other. then=write asks to write as well, which a reader may not: the
// answer is 409, "upgrade".
func (s *Service) testRead(c *gin.Context) {
	v := s.visit(c, hasReadWrite, "hold", "wait", "lease", "then")
	hold, then := v.holds(10*time.Second), v.then("write")
	if v.refused() {
		return
	}
	rw := v.primitives.ReadWrite
	v.hold(rw.Read, hold, then, rw.Write)
}

// testWrite holds the write lock for a while, alone. then=read reads as well:
// the writer does not wait for itself.
func (s *Service) testWrite(c *gin.Context) {
	v := s.visit(c, hasReadWrite, "hold", "wait", "lease", "then")
	hold, then := v.holds(10*time.Second), v.then("read")
	if v.refused() {
		return
	}
	rw := v.primitives.ReadWrite
	v.hold(rw.Write, hold, then, rw.Read)
}

// testSemaphore holds qty of the permits for a while (3.9.6, 4.6.5). All who use
// the name at one time must say the same number of permits: else 409, "mismatch".
func (s *Service) testSemaphore(c *gin.Context) {
	v := s.visit(c, func(p locks.Primitives) bool { return p.Semaphore != nil },
		"permits", "qty", "hold", "wait", "lease")
	permits := int(v.number("permits", 3, 1, 1000))
	qty := int(v.number("qty", 1, 1, int64(max(1, permits))))
	hold := v.holds(5 * time.Second)
	if v.refused() {
		return
	}
	grant, err := v.primitives.Semaphore.Acquire(v.context(), v.request, permits, qty)
	if v.failed(err) {
		return
	}
	v.finish(grant, held{Permits: permits, Qty: qty}, func(ctx context.Context) error { return locks.Work(ctx, hold) })
}

// holds reads wait, lease and hold, which is returned.
func (v *visit) holds(otherwise time.Duration) time.Duration {
	hold := v.duration("hold", otherwise, 0)
	v.waits()
	v.leases()
	return hold
}

// then reads whether the owner takes the other lock, too.
func (v *visit) then(other string) string {
	then := v.text("then", "")
	if v.values.Has("then") && then != other {
		v.fail("then", then, other+" or left out")
	}
	return then
}

type take func(context.Context, locks.Request) (*locks.Lock, error)

// hold takes first, then the other under it if then says so, and holds both.
func (v *visit) hold(first take, hold time.Duration, then string, other take) {
	grant, err := first(v.context(), v.request)
	if v.failed(err) {
		return
	}
	v.finish(grant, held{Then: then}, func(ctx context.Context) error {
		if then == "" {
			return locks.Work(ctx, hold)
		}
		inner, err := other(ctx, v.request)
		if err != nil {
			return err
		}
		_, err = keep(ctx, inner, func(ctx context.Context) error { return locks.Work(ctx, hold) })
		return err
	})
}

// finish works under the grant, gives it back and answers.
func (v *visit) finish(grant *locks.Lock, answer held, work func(context.Context) error) {
	v.granted = time.Now()
	v.trace(api.Granted)
	warning, err := keep(v.context(), grant, work)
	v.trace(api.Released)
	if v.failed(err) {
		return
	}
	answer.done, answer.HeldMS, answer.Warning = v.done(api.Held), ms(time.Since(v.granted)), warning
	v.gin.JSON(http.StatusOK, answer)
}
