package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/locks/catalog"
)

// writeStrategies prints the claims and summaries of all strategies, and what searches of all schedules
// say. Links are relative to docs.
func writeStrategies(lang string) func(io.Writer) error {
	return func(w io.Writer) error {
		searches, err := readJSON[explored](recordedSearches)
		if err != nil {
			return err
		}
		return printStrategies(w, catalog.Cards(), searches.Sentences, lang)
	}
}

func printStrategies(w io.Writer, cards []api.Card, searches map[string][]api.Text, lang string) error {
	out := bufio.NewWriter(w)
	header, yes := "| strategy | sells exactly | ends by itself | renewed | re-entrant | fence | in order |", "yes"
	summary, broken := "- %s (%s): %s%s\n  - When to use it: %s\n", " *Broken by %s.*"
	every := "  - All schedules:\n"
	if lang == "zh" {
		header, yes = "| 策略 | 不超卖 | 会过期 | 自动续期 | 可重入 | 栅栏令牌 | 先来先得 |", "是"
		summary, broken = "- %s（%s）：%s%s\n  - 何时使用：%s\n", "*会被 %s 打破。*"
		every = "  - 所有调度：\n"
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
		fmt.Fprintf(out, summary, link(c), c.Source, c.Summary.In(lang), brokenBy, c.When.In(lang))
		if sentences := searches[c.ID]; len(sentences) > 0 {
			fmt.Fprint(out, every)
			for _, s := range sentences {
				fmt.Fprintf(out, "    - %s\n", s.In(lang))
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
