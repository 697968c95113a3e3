package cli

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/locks/catalog"
)

func strategiesCommand() *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "strategies [strategy]",
		Short: "Print all strategies, or one strategy's card and the code that runs",
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: offerStrategies(1),
		RunE: func(c *cobra.Command, args []string) error {
			cards := catalog.Cards()
			switch {
			case markdown && len(args) == 0:
				return printMarkdown(c.OutOrStdout(), cards, chinese())
			case len(args) == 0:
				printCatalogue(c.OutOrStdout(), cards)
				return nil
			}
			chosen, err := comparison.Choose(cards, args, false)
			if err != nil {
				return usage("strategies: %w", err)
			}
			printCard(c.OutOrStdout(), chosen[0])
			return printCode(c.OutOrStdout(), chosen[0])
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print the table of docs/strategies.md")
	return c
}

// printMarkdown prints the claims and summaries in docs/strategies.md. Links are relative to docs.
func printMarkdown(w io.Writer, cards []api.Card, inChinese bool) error {
	out := bufio.NewWriter(w)
	header, yes := "| strategy | sells exactly | ends by itself | renewed | re-entrant | fence | in order |", "yes"
	summary, broken := "- %s (%s): %s%s\n", " *Broken by %s.*"
	if inChinese {
		header, yes = "| 策略 | 不超卖 | 会过期 | 自动续期 | 可重入 | 栅栏令牌 | 先来先得 |", "是"
		summary, broken = "- %s（%s）：%s%s\n", "*会被 %s 打破。*"
	}
	fmt.Fprintf(out, "%s\n|---|:-:|:-:|:-:|:-:|:-:|:-:|\n", header)
	for _, c := range cards {
		fmt.Fprintf(out, "| %s |", link(c))
		for _, claim := range []bool{c.Safe, c.Lease, c.Renews, c.Reentrant, c.Fenced, c.Fair} {
			fmt.Fprintf(out, " %s |", map[bool]string{true: yes}[claim])
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	for _, c := range cards {
		text, hazards := c.Summary.EN, make([]string, len(c.Breaks))
		if inChinese {
			text = c.Summary.ZH
		}
		for i, b := range c.Breaks {
			hazards[i] = string(b.Hazard)
		}
		brokenBy := ""
		if len(hazards) > 0 {
			brokenBy = fmt.Sprintf(broken, strings.Join(hazards, ", "))
		}
		fmt.Fprintf(out, summary, link(c), c.Source, text, brokenBy)
	}
	fmt.Fprintln(out)
	for _, c := range cards {
		files, err := catalog.Source(c)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "[`%s`]: ../%s\n", c.ID, files[0].Name)
	}
	return out.Flush()
}

func link(c api.Card) string {
	if c.Core {
		return "**[`" + c.ID + "`]**"
	}
	return "[`" + c.ID + "`]"
}

func printCatalogue(w io.Writer, cards []api.Card) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"Strategy", "Works across", "Sells exactly", "What it does"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, WidthMax: 60}})
	scopes := map[api.Scope]string{api.ScopeNone: "nothing", api.ScopeProcess: "one process", api.ScopeShared: "all replicas"}
	for _, card := range cards {
		t.AppendRow(table.Row{card.ID, scopes[card.Scope], yes(card.Safe), card.Summary.EN})
	}
	t.Render()
}

func printCard(w io.Writer, card api.Card) {
	fmt.Fprintf(w, "%s: %s (%s)\n\n%s\n%s\n\n", card.ID, card.Title.EN, card.Title.ZH, card.Summary.EN, card.Summary.ZH)
	fmt.Fprintf(w, "tutorial   %s\nneeds      %s\nlease %s, renewed %s, re-entrant %s, fence %s, in order of arrival %s\n", card.Source,
		strings.Join(card.Backends, ", "), yes(card.Lease), yes(card.Renews), yes(card.Reentrant), yes(card.Fenced), yes(card.Fair))
	survives := make([]string, len(card.Protects))
	for i, h := range card.Protects {
		survives[i] = string(h)
	}
	fmt.Fprintf(w, "survives   %s\n", strings.Join(survives, ", "))
	for _, b := range card.Breaks {
		at := ""
		if b.At != "" {
			at = " (at step " + string(b.At) + ")"
		}
		fmt.Fprintf(w, "broken by  %s%s: %s\n           %s\n", b.Hazard, at, b.Why.EN, b.Why.ZH)
	}
	for _, f := range card.Tutorial {
		fmt.Fprintf(w, "measured   by the tutorial's author: %.1f/s, median %.0f ms, %d left %s\n", f.Throughput, f.MedianMS, f.Remaining, f.Note.EN)
	}
}

func printCode(w io.Writer, card api.Card) error {
	files, err := catalog.Source(card)
	if err != nil {
		return err
	}
	own := 0
	for _, f := range files {
		if strings.HasSuffix(f.Name, ".go") && path.Dir(f.Name) != "locks" {
			own++
		}
	}
	fmt.Fprintf(w, "code       %d Go files in reading order; all strategies share the files of package locks, which are not listed\n", own)
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
