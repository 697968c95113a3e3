package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/docs"
	"oversell/lab/comparison"
	"oversell/lab/terminal"
	"oversell/locks/catalog"
)

func strategiesCommand() *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "strategies [strategy]",
		Short: "Print all strategies, or one strategy's card and the code that runs",
		Args:  between(0, 1),

		ValidArgsFunction: offerStrategies(1),
		RunE: func(c *cobra.Command, args []string) error {
			cards := catalog.Cards()
			switch {
			case markdown && len(args) == 0:
				var searches explored
				if err := json.Unmarshal(docs.Explored, &searches); err != nil {
					return fmt.Errorf("read the recorded searches: %w", err)
				}
				return printMarkdown(c.OutOrStdout(), cards, searches.Sentences, chinese())
			case len(args) == 0:
				return printCatalogue(c.OutOrStdout(), cards, terminal.Of(c.OutOrStdout()), language())
			}
			chosen, err := comparison.Choose(cards, args, false)
			if err != nil {
				return usage("strategies: %w", err)
			}
			printCard(c.OutOrStdout(), chosen[0], terminal.Of(c.OutOrStdout()))
			return printCode(c.OutOrStdout(), chosen[0], terminal.Of(c.OutOrStdout()))
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print the table of docs/strategies.md")
	return c
}

// printMarkdown prints the claims and summaries in docs/strategies.md, and what searches of all
// schedules say. Links are relative to docs.
func printMarkdown(w io.Writer, cards []api.Card, searches map[string][]api.Text, inChinese bool) error {
	out := bufio.NewWriter(w)
	header, yes := "| strategy | sells exactly | ends by itself | renewed | re-entrant | fence | in order |", "yes"
	summary, broken := "- %s (%s): %s%s\n  - When to use it: %s\n", " *Broken by %s.*"
	every := "  - All schedules:\n"
	if inChinese {
		header, yes = "| 策略 | 不超卖 | 会过期 | 自动续期 | 可重入 | 栅栏令牌 | 先来先得 |", "是"
		summary, broken = "- %s（%s）：%s%s\n  - 何时使用：%s\n", "*会被 %s 打破。*"
		every = "  - 所有调度：\n"
	}
	text := func(t api.Text) string {
		if inChinese {
			return t.ZH
		}
		return t.EN
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
		hazards := make([]string, len(c.Breaks))
		for i, b := range c.Breaks {
			hazards[i] = string(b.Hazard)
		}
		brokenBy := ""
		if len(hazards) > 0 {
			brokenBy = fmt.Sprintf(broken, strings.Join(hazards, ", "))
		}
		fmt.Fprintf(out, summary, link(c), c.Source, text(c.Summary), brokenBy, text(c.When))
		if sentences := searches[c.ID]; len(sentences) > 0 {
			fmt.Fprint(out, every)
			for _, s := range sentences {
				fmt.Fprintf(out, "    - %s\n", text(s))
			}
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

func link(c api.Card) string {
	if c.Core {
		return "**[`" + c.ID + "`]**"
	}
	return "[`" + c.ID + "`]"
}

// printCatalogue wraps the summaries in a terminal, and prints a line for each strategy in a pipe.
func printCatalogue(w io.Writer, cards []api.Card, screen terminal.Screen, lang string) error {
	head := func(en, zh string) string { return api.Text{EN: en, ZH: zh}.In(lang) }
	t := terminal.Table{Columns: []terminal.Column{
		{Head: head("strategy", "策略")}, {Head: head("works across", "作用范围")}, {Head: head("safe", "正确")}, {Head: head("what it does", "做法")},
	}}
	scopes := map[api.Scope]api.Text{
		api.ScopeNone: {EN: "nothing", ZH: "无"}, api.ScopeProcess: {EN: "one process", ZH: "一个进程"}, api.ScopeShared: {EN: "all replicas", ZH: "所有副本"},
	}
	for _, card := range cards {
		sign := map[bool]string{true: terminal.Good, false: terminal.Bad}[card.Safe]
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: card.ID}, {Text: scopes[card.Scope].In(lang)}, {Text: sign, Sign: sign}, {Text: card.Summary.In(lang)},
		})
	}
	if err := t.Write(w, screen); err != nil {
		return err
	}
	legend := api.Text{
		EN: "✓ sells exactly what is in stock, on three replicas   ✗ may sell more",
		ZH: "✓ 三个副本也不会超卖   ✗ 可能超卖",
	}
	_, err := fmt.Fprintln(w, "\n"+screen.Wrap(legend.In(lang), 0))
	return err
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
	line := fmt.Sprintf("code       %d Go files in reading order; all strategies share the files of package locks, which are not listed", own)
	fmt.Fprintln(w, screen.Wrap(line, 11))
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
