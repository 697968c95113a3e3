package handlers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"oversell/api"
	"oversell/stock"
)

// TestUntracedCostsNothing checks that a request without a tracer allocates nothing for its spans.
func TestUntracedCostsNothing(t *testing.T) {
	ctx := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil).Context()
	var watch stock.Watch
	allocated := testing.AllocsPerRun(100, func() {
		end := addSpans(ctx, "waiter", &watch)
		describeSale(ctx, "waiter", api.Sold, stock.Receipt{})
		end()
	})
	if allocated != 0 {
		t.Errorf("an untraced request allocates %v times for its spans, want 0", allocated)
	}
}
