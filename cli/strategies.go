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
				return printMarkdown(c.OutOrStdout(), cards, chinese())
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
	c.Flags().BoolVar(&markdown, "markdown", false, "print the table of docs/strategies.md")
	return c
}

// printMarkdown writes what the cards claim as a table, then each strategy in a line, with
// links from the folder docs.
func printMarkdown(w io.Writer, cards []api.Card, inChinese bool) error {
	out := bufio.NewWriter(w)
	if inChinese {
		fmt.Fprintln(out, "| 策略 | 不超卖 | 会过期 | 自动续期 | 可重入 | 栅栏令牌 | 先来先得 |")
	} else {
		fmt.Fprintln(out, "| strategy | sells exactly | ends by itself | renewed | re-entrant | fence | in order |")
	}
	fmt.Fprintln(out, "|---|:-:|:-:|:-:|:-:|:-:|:-:|")
	for _, c := range cards {
		fmt.Fprintf(out, "| %s |", linked(c))
		for _, claim := range []bool{c.Safe, c.Lease, c.Renews, c.Reentrant, c.Fenced, c.Fair} {
			fmt.Fprintf(out, " %s |", mark(claim, inChinese))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	for _, c := range cards {
		if inChinese {
			fmt.Fprintf(out, "- %s（%s）：%s%s\n", linked(c), c.Source, c.Summary.ZH, breaks(c, "*会被 %s 打破。*"))
		} else {
			fmt.Fprintf(out, "- %s (%s): %s%s\n", linked(c), c.Source, c.Summary.EN, breaks(c, " *Broken by %s.*"))
		}
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

func linked(c api.Card) string {
	if c.Core {
		return "**[`" + c.ID + "`]**"
	}
	return "[`" + c.ID + "`]"
}

func mark(claim, inChinese bool) string {
	switch {
	case !claim:
		return ""
	case inChinese:
		return "是"
	default:
		return "yes"
	}
}

// breaks puts what breaks a strategy into a sentence.
func breaks(c api.Card, sentence string) string {
	if len(c.Breaks) == 0 {
		return ""
	}
	hazards := make([]string, len(c.Breaks))
	for i, b := range c.Breaks {
		hazards[i] = string(b.Hazard)
	}
	return fmt.Sprintf(sentence, strings.Join(hazards, ", "))
}

func printLadder(w io.Writer, cards []api.Card) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"Strategy", "Keeps order", "Sells exactly", "What it does"})
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 4, WidthMax: 60}})
	for _, card := range cards {
		order := map[api.Scope]string{api.ScopeNone: "nowhere", api.ScopeProcess: "in one process", api.ScopeShared: "everywhere"}
		t.AppendRow(table.Row{card.ID, order[card.Scope], yes(card.Safe), card.Summary.EN})
	}
	t.Render()
}

func printCard(w io.Writer, card api.Card) {
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
