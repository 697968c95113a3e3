package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/locks/catalog"
	"oversell/trial/explore"
	"oversell/view/terminal"
)

// all runs the searches of the named strategies, or of all, and compares them with the cards.
func (f *exploreFlags) all(cmd *cobra.Command, names []string) error {
	cards, err := comparison.Choose(catalog.Cards(), names, len(names) == 0)
	if err != nil {
		return &exit{2, err}
	}
	if err := f.files.check(); err != nil {
		return err
	}
	return f.searchAll(cmd, cards)
}

func (f *exploreFlags) searchAll(cmd *cobra.Command, cards []api.Card) error {
	ctx, out := cmd.Context(), f.files.textOutput(cmd.OutOrStdout(), cmd.ErrOrStderr())
	results, contradictions := []explore.Result{}, []string{}
	_, _ = fmt.Fprintf(out, "%-20s %-48s %10s %8s %8s %8s\n", "strategy", "bounds", "schedules", "lose", "in vain", "seconds")
	var failed error
	for _, t := range scopesOf(cards) {
		began := time.Now()
		r, err := f.search(ctx, t, nil)
		if failed = err; err != nil || ctx.Err() != nil {
			break
		}
		results = append(results, r)
		printRow(out, r, time.Since(began))
		card := cards[slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == t.Strategy })]
		if text := r.Contradiction(card); text != "" {
			contradictions = append(contradictions, text)
		}
	}
	err := errors.Join(failed, f.files.write(map[string]func(io.Writer) error{"json": func(w io.Writer) error {
		return json.NewEncoder(w).Encode(results)
	}}, cmd.OutOrStdout(), cmd.ErrOrStderr()))
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("stopped"))
	}
	if len(contradictions) > 0 {
		err = concluded(true, false, errors.Join(err, fmt.Errorf("the cards are contradicted:\n  %s", strings.Join(contradictions, "\n  "))))
	} else if err == nil {
		_, _ = fmt.Fprintln(out, "No result contradicts a card.")
	}
	return err
}

// scopesOf returns the searches of strategies.
func scopesOf(cards []api.Card) (all []explore.Scope) {
	for _, card := range cards {
		all = append(all, explore.Scopes(card)...)
	}
	return all
}

func printRow(out io.Writer, r explore.Result, took time.Duration) {
	schedules := terminal.Number(r.Schedules)
	if !r.Complete {
		schedules = "> " + schedules
	}
	_, _ = fmt.Fprintf(out, "%-20s %-48s %10s %8s %8s %8.1f\n", r.Strategy, r.Bounds, schedules, terminal.Number(r.Oversold), terminal.Number(r.Stalled), took.Seconds())
}
