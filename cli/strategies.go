package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"oversell/locks"
	"oversell/locks/catalog"
)

func strategiesCommand() *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "strategies [strategy]",
		Short: "Print the ladder, or one strategy's card and the code that runs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cards := catalog.Cards()
			var ids []string
			for _, card := range cards {
				ids = append(ids, card.ID)
			}
			switch {
			case markdown && len(args) == 0:
				return printMarkdown(c.OutOrStdout(), cards)
			case len(args) == 0:
				printLadder(c.OutOrStdout(), cards)
				return nil
			}
			for _, card := range cards {
				if card.ID == args[0] {
					printCard(c.OutOrStdout(), card)
					return printCode(c.OutOrStdout(), card)
				}
			}
			return &exit{2, fmt.Errorf("no strategy %q; there are %s", args[0], strings.Join(ids, ", "))}
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print the ladder as the README has it")
	return c
}

// printMarkdown has a row for each strategy, linked to its file.
func printMarkdown(w io.Writer, cards []locks.Card) error {
	fmt.Fprintln(w, "| strategy | tutorial | what it does | sells exactly | what breaks it | run it |\n|---|---|---|---|---|---|")
	for _, card := range cards {
		files, err := catalog.Source(card)
		if err != nil {
			return err
		}
		breaks := make([]string, len(card.Breaks))
		for i, b := range card.Breaks {
			breaks[i] = string(b.Hazard)
		}
		name := "`" + card.ID + "`"
		if card.Core {
			name = "**" + name + "**"
		}
		fmt.Fprintf(w, "| [%s](%s) | %s | %s | %s | %s | `bin/oversell run %s` |\n",
			name, files[0].Name, card.Source, card.Summary.EN, yes(card.Safe), strings.Join(breaks, ", "), card.ID)
	}
	return nil
}

func printLadder(w io.Writer, cards []locks.Card) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"Strategy", "Keeps order", "Sells exactly", "What it does"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, WidthMax: 60}})
	for _, card := range cards {
		order := map[locks.Scope]string{locks.ScopeNone: "nowhere", locks.ScopeProcess: "in one process", locks.ScopeShared: "everywhere"}
		t.AppendRow(table.Row{card.ID, order[card.Scope], yes(card.Safe), card.Summary.EN})
	}
	t.Render()
}

func printCard(w io.Writer, card locks.Card) {
	fmt.Fprintf(w, "%s: %s (%s)\n\n%s\n%s\n\n", card.ID, card.Title.EN, card.Title.ZH, card.Summary.EN, card.Summary.ZH)
	fmt.Fprintf(w, "tutorial   %s\nneeds      %s\nlease %s, renewed %s, re-entrant %s, fence %s, in order of arrival %s\n", card.Source,
		strings.Join(card.Backends, ", "), yes(card.Lease), yes(card.Renews), yes(card.Reentrant), yes(card.Fenced), yes(card.Fair))
	protects := make([]string, len(card.Protects))
	for i, h := range card.Protects {
		protects[i] = string(h)
	}
	fmt.Fprintf(w, "protects   %s\n", strings.Join(protects, ", "))
	for _, b := range card.Breaks {
		at := ""
		if b.At != "" {
			at = " (at step " + string(b.At) + ")"
		}
		fmt.Fprintf(w, "breaks     %s%s: %s\n           %s\n", b.Hazard, at, b.Why.EN, b.Why.ZH)
	}
	for _, f := range card.Tutorial {
		fmt.Fprintf(w, "measured   by the tutorial's author: %.1f/s, median %.0f ms, %d left %s\n", f.Throughput, f.MedianMS, f.Remaining, f.Note)
	}
}

func printCode(w io.Writer, card locks.Card) error {
	files, err := catalog.Source(card)
	if err != nil {
		return err
	}
	own := 0
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".go") && f.Name != "locks/guard.go" {
			own++
		}
	}
	fmt.Fprintf(w, "code       %d Go files besides the contract in package locks, in reading order\n", own)
	for _, f := range files {
		fmt.Fprintf(w, "\n--- %s\n%s", f.Name, f.Text)
	}
	return nil
}

func yes(claim bool) string {
	if claim {
		return "yes"
	}
	return "no"
}
