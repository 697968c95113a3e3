package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oversell/api"
	"oversell/handlers"
	"oversell/locks"
	"oversell/stock"
)

// TestProductIsLookedForFirst checks that a sale looks up its product before the strategy runs. A
// product that the replica knows is not looked up again.
func TestProductIsLookedForFirst(t *testing.T) {
	t.Parallel()
	none, asked := &orderRecorder{id: "none"}, map[int64]int{}
	s := handlers.New(handlers.Config{
		Replica: "replica-1", Strategies: []locks.Strategy{none}, Log: t.Logf,
		Exists: func(_ context.Context, product int64) error {
			asked[product]++
			switch product {
			case 1:
				return nil
			case 2:
				return &stock.Unavailable{Backend: "mysql", Err: http.ErrServerClosed}
			}
			return fmt.Errorf("product %d: %w", product, stock.ErrUnknownProduct)
		},
	})
	for range 3 {
		for product, want := range map[int]int{1: http.StatusOK, 2: http.StatusServiceUnavailable, 3: http.StatusNotFound} {
			if answer, p := request(t, s, http.MethodGet, "/check/lock", fmt.Sprintf("product=%d", product)); answer.Code != want {
				t.Errorf("product %d: HTTP %d %+v", product, answer.Code, p)
			}
		}
	}
	if none.n.Load() != 3 || asked[1] != 1 || asked[2] != 3 || asked[3] != 3 {
		t.Errorf("%d sales, want 3; looked up %v", none.n.Load(), asked)
	}
}

// TestUnfitTables: with a table of another program, sales could be lost, so none may begin. The routes without the
// tables answer.
func TestUnfitTables(t *testing.T) {
	t.Parallel()
	none, foreign := &orderRecorder{id: "none"}, errors.New("db_stock: the table was not made by oversell")
	s := handlers.New(handlers.Config{
		Replica: "replica-1", Strategies: []locks.Strategy{none}, Log: t.Logf, Lab: true, Token: labToken,
		Unfit: func() error { return foreign },
	})
	for path, method := range map[string]string{"/check/lock": http.MethodGet, "/goods/1/orders": http.MethodPost, "/stock/1": http.MethodPut, "/test/lock": http.MethodPost, "/test/unlock": http.MethodGet} {
		answer, p := request(t, s, method, path, "strategy=none&count=1")
		if answer.Code != http.StatusServiceUnavailable || !strings.Contains(p.Detail, foreign.Error()) || p.Outcome != string(api.Unavailable) {
			t.Errorf("%s %s: HTTP %d %+v", method, path, answer.Code, p)
		}
	}
	if answer, _ := request(t, s, http.MethodGet, "/primitives/none", ""); answer.Code != http.StatusNotFound || none.n.Load() > 0 {
		t.Errorf("GET /primitives/none: HTTP %d; %d sales", answer.Code, none.n.Load())
	}
	foreign = nil
	if answer, p := request(t, s, http.MethodGet, "/check/lock", ""); answer.Code != http.StatusOK {
		t.Errorf("after the repair: HTTP %d %+v", answer.Code, p)
	}
}
