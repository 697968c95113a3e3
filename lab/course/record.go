package course

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Recorder runs the commands of lessons and writes their results into the lessons.
type Recorder struct {
	Runner
	Cards Cards
	// Refill prepares the stock for the commands of a question.
	Refill func(ctx context.Context) error
}

// recorded matches what a new run writes again: an answer, what was seen, and a figure. It also matches a block of
// commands, behind which its answer stands.
var recorded = regexp.MustCompile("(?ms)^ *```sh\n.*? *```\n|^ *<!-- answer: \\d+ -->\n|<!-- seen -->.*?<!-- /seen -->|" + figure.String())

// Record returns the lesson's file with the answers, the output and the figures of a new run.
func (r Recorder) Record(ctx context.Context, l Lesson) (string, error) {
	questions := slices.DeleteFunc(l.Questions(), func(t Question) bool { return len(t.Commands) == 0 })
	all := NewResults()
	var err error
	text := recorded.ReplaceAllStringFunc(l.source, func(old string) (made string) {
		trimmed := strings.TrimLeft(old, " ")
		switch {
		case err != nil, strings.HasPrefix(trimmed, "<!-- answer"): // this run's answer replaces it
		case strings.HasPrefix(trimmed, "<!-- seen"):
			made = "<!-- seen -->\n\n```text\n" + Short(all.text) + "\n```\n\n<!-- /seen -->"
		case strings.HasPrefix(trimmed, "<!-- ="):
			made, err = all.Figures(old, r.Cards)
		default:
			made, err = r.answer(ctx, questions[0], all, old[:len(old)-len(trimmed)])
			made, questions = old+made, questions[1:]
		}
		return made
	})
	if err != nil {
		return "", fmt.Errorf("course: %s: %w", l.Name, err)
	}
	return text, nil
}

// answer runs the commands of a question, and returns a line with the option that is right.
func (r Recorder) answer(ctx context.Context, t Question, all *Results, indent string) (line string, err error) {
	if err := r.Refill(ctx); err != nil {
		return "", err
	}
	results, err := r.Run(ctx, t.Commands)
	if err != nil {
		return "", err
	}
	all.Merge(results)
	right, err := results.Right(t.Options, r.Cards)
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(strings.Fields(t.Ask), " "), err)
	}
	if right > 0 {
		line = fmt.Sprintf("%s<!-- answer: %d -->\n", indent, right)
	}
	return line, nil
}

var (
	// conditions matches the lines with the conditions of a run: from its date to an empty line. A
	// match by names would also find the row of a table, such as that of the strategy redis.
	conditions = regexp.MustCompile(`(?m)^date {3,}.*(\n.+)*\n?`)
	starts     = regexp.MustCompile(`(?m)^(starting a lab|ready after ).*\n?`)
	trailing   = regexp.MustCompile(`(?m)[ \t]+$`)
	manyEmpty  = regexp.MustCompile(`\n{3,}`)
)

// Short returns what commands printed without the conditions of the runs.
func Short(text string) string {
	for _, left := range []*regexp.Regexp{conditions, starts, trailing} {
		text = left.ReplaceAllString(text, "")
	}
	return strings.Trim(manyEmpty.ReplaceAllString(text, "\n\n"), "\n")
}
