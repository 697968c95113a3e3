package cli

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/locks/catalog"
	"oversell/view/terminal"
)

func strategiesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "strategies [strategy]",
		Short: "Print all strategies, or one strategy's card and the code that runs",
		Args:  between(0, 1),

		ValidArgsFunction: offerStrategies(1),
		RunE: func(c *cobra.Command, args []string) error {
			cards := catalog.Cards()
			if len(args) == 0 {
				printCatalogue(c.OutOrStdout(), cards, terminal.Of(c.OutOrStdout()), language())
				return nil
			}
			chosen, err := comparison.Choose(cards, args, false)
			if err != nil {
				return &exit{2, err}
			}
			printCard(c.OutOrStdout(), chosen[0], terminal.Of(c.OutOrStdout()))
			return printCode(c.OutOrStdout(), chosen[0], terminal.Of(c.OutOrStdout()))
		},
	}
}

// printCatalogue wraps the summaries in a terminal, and prints a line for each strategy in a pipe.
func printCatalogue(w io.Writer, cards []api.Card, screen terminal.Screen, lang string) {
	head := func(en, zh string) string { return api.Text{EN: en, ZH: zh}.In(lang) }
	t := terminal.Texts("", head("strategy", "策略"), head("works across", "作用范围"), head("safe", "正确"), head("what it does", "做法"))
	scopes := map[api.Scope]api.Text{
		api.ScopeNone: {EN: "nothing", ZH: "无"}, api.ScopeProcess: {EN: "one process", ZH: "一个进程"}, api.ScopeShared: {EN: "all replicas", ZH: "所有副本"},
	}
	for _, card := range cards {
		sign := terminal.Bad
		if card.Safe {
			sign = terminal.Good
		}
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: card.ID}, {Text: scopes[card.Scope].In(lang)}, {Text: sign, Sign: sign}, {Text: card.Summary.In(lang)},
		})
	}
	t.Write(w, screen)
	legend := api.Text{
		EN: "✓ sells exactly what is in stock, on three replicas   ✗ may sell more",
		ZH: "✓ 三个副本也不会超卖   ✗ 可能超卖",
	}
	fmt.Fprintln(w, "\n"+screen.Wrap(legend.In(lang), 0))
}

// printCard prints the card in both languages.
func printCard(w io.Writer, card api.Card, screen terminal.Screen) {
	const indent = 11
	line := func(format string, args ...any) {
		_, _ = fmt.Fprintln(w, screen.Wrap(fmt.Sprintf(format, args...), indent))
	}
	fmt.Fprintf(w, "%s\n", screen.Wrap(fmt.Sprintf("%s: %s (%s)", card.ID, card.Title.EN, card.Title.ZH), 0))
	fmt.Fprintf(w, "\n%s\n%s\n", screen.Wrap(card.Summary.EN, 0), screen.Wrap(card.Summary.ZH, 0))
	fmt.Fprintf(w, "\n%s\n%s\n\n", screen.Wrap("When to use it: "+card.When.EN, 0), screen.Wrap("何时使用："+card.When.ZH, 0))
	line("tutorial   %s", card.Source)
	line("needs      %s", strings.Join(card.Backends, ", "))
	line("claims     lease %s, renewed %s, re-entrant %s, fence %s, in order of arrival %s",
		yes(card.Lease), yes(card.Renews), yes(card.Reentrant), yes(card.Fenced), yes(card.Fair))
	survives := make([]string, len(card.Protects))
	for i, h := range card.Protects {
		survives[i] = string(h)
	}
	line("survives   %s", strings.Join(survives, ", "))
	for _, b := range card.Breaks {
		at := ""
		if b.At != "" {
			at = " (at step " + string(b.At) + ")"
		}
		line("broken by  %s%s: %s", b.Hazard, at, b.Why.EN)
		line("           %s", b.Why.ZH)
	}
	if card.Setting.EN != "" {
		line("setting    %s", card.Setting.EN)
		line("           %s", card.Setting.ZH)
	}
	for _, f := range card.Tutorial {
		line("measured   by the tutorial's author: %.1f/s, median %.0f ms, %d left %s", f.Throughput, f.MedianMS, f.Remaining, f.Note.EN)
	}
}

func printCode(w io.Writer, card api.Card, screen terminal.Screen) error {
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
	line := fmt.Sprintf("code       %d Go files of the strategy, in reading order", own)
	fmt.Fprintln(w, screen.Wrap(line, 11))
	if contract := catalog.Contract(card, files); len(contract) > 0 {
		fmt.Fprintln(w, screen.Wrap("then       "+strings.Join(contract, ", "), 11))
	}
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
