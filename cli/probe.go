package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// probeCommand is the container's health check: its image has no shell and no curl.
func probeCommand() *cobra.Command {
	timeout := 3 * time.Second
	c := &cobra.Command{
		Use:     "probe URL",
		Short:   "Exit 0 when a URL answers 200, 1 when it does not",
		Example: "  oversell probe http://127.0.0.1:8000/readyz",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return probe(ctx, args[0])
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "give up after this long")
	return c
}

// probe asks once. The answer's beginning is in the error: `docker inspect` shows it.
func probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	// No proxy: the environment's is not meant for the machine's own replica.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // whatever came is better than nothing
	return fmt.Errorf("probe: %s answered %s: %s", url, answer.Status, body)
}
