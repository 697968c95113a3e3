package comparison

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/load"
)

// product is the id of the product that the tutorial sells.
const product = 1

// connect returns the service's cards, and a client that, like the load, uses no HTTP proxy.
func connect(ctx context.Context, target, token string) (service api.Client, cards []api.Card, err error) {
	base, err := load.ParseTarget(target)
	if err != nil {
		return service, nil, err
	}
	service = api.Client{
		Base: strings.TrimSuffix(base.String(), "/"), Token: token, HTTP: &http.Client{Transport: &http.Transport{}, Timeout: 15 * time.Second},
	}
	cards, err = service.Cards(ctx)
	var unreachable *url.Error
	switch {
	case errors.As(err, &unreachable):
		err = fmt.Errorf("cannot reach the lab at %s: %w. Start one with: make lab", service.Base, unreachable.Err)
	case err == nil && len(cards) == 0:
		err = fmt.Errorf("%s has no strategies: is it a replica of oversell?", service.Base)
	}
	return service, cards, err
}

// reset fails if another client sells in between, which would look like a lost update.
func reset(ctx context.Context, service api.Client, strategy string, count int) (got api.Stock, err error) {
	set, err := service.ResetStock(ctx, product, count)
	var rejected *api.Error
	if errors.As(err, &rejected) && rejected.Status == http.StatusForbidden {
		return got, fmt.Errorf("the lab rejected the reset: %s. Pass the token that the lab printed, with --token or LAB_TOKEN", rejected.Problem.Detail)
	}
	if err != nil {
		return got, fmt.Errorf("reset the stock: %w", err)
	}
	got, err = service.Stock(ctx, strategy, product)
	if err != nil {
		return got, fmt.Errorf("read the stock after the reset: %w", err)
	}
	if got.Count != count || got.Version != set.Version || got.Fence != 0 {
		return got, fmt.Errorf("the stock was not reset: count %d, version %d, fence %d instead of %d, %d, 0. Does another client use this lab?",
			got.Count, got.Version, got.Fence, count, set.Version)
	}
	got.Warnings = set.Warnings
	return got, nil
}
