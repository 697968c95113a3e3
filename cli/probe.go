package cli

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
)

// probeCommand is the health check of the Docker image, which has no shell and no curl.
func probeCommand() *cobra.Command {
	timeout := 3 * time.Second
	c := &cobra.Command{
		Use:     "probe URL",
		Short:   "Exit with 0 if a URL answers 200, and with 1 otherwise",
		Example: "  oversell probe http://127.0.0.1:8000/readyz",
		Args:    between(1, 1),
		Hidden:  true,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return probe(ctx, args[0])
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "give up after this time")
	return c
}

// probe sends one request without a proxy. `docker inspect` shows the text of its error.
func probe(ctx context.Context, url string) error {
	replica := api.Client{Base: url, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	return replica.Call(ctx, http.MethodGet, "", nil, nil)
}
