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

// Record returns the lesson's file with the answers, the output and the figures of a new run.
func (r Recorder) Record(ctx context.Context, l Lesson) (string, error) {
	w := &recordWriter{ctx: ctx, recorder: r, questions: l.Questions(), all: NewResults()}
	for line := range strings.SplitAfterSeq(l.source, "\n") {
		if err := w.write(line); err != nil {
			return "", fmt.Errorf("course: %s: %w", l.Name, err)
		}
	}
	return w.out.String(), nil
}

// recordWriter copies a lesson line by line. It runs a question after the question's block of commands.
type recordWriter struct {
	ctx       context.Context //nolint:containedctx // the writer lives as long as one call of Record
	recorder  Recorder
	questions []Question // whose commands have not run yet
	all       *Results
	out       strings.Builder
	inShell   bool
	inSeen    bool
}

func (w *recordWriter) write(line string) error {
	trimmed := strings.TrimSpace(line)
	switch {
	case w.inSeen && trimmed != "<!-- /seen -->", answered.MatchString(strings.TrimRight(line, "\n")):
		return nil // this run's output replaces it
	case trimmed == "```sh":
		w.inShell = true
	case trimmed == "<!-- seen -->":
		w.inSeen = true
		w.out.WriteString(line + "\n```text\n" + Short(w.all.text) + "\n```\n\n")
		return nil
	case trimmed == "<!-- /seen -->":
		w.inSeen = false
	}
	line, err := w.all.Figures(line, w.recorder.Cards)
	if err != nil {
		return err
	}
	w.out.WriteString(line)
	if w.inShell && trimmed == "```" {
		w.inShell = false
		return w.run(strings.Repeat(" ", strings.Index(line, "`")))
	}
	return nil
}

func (w *recordWriter) run(indent string) error {
	i := slices.IndexFunc(w.questions, func(t Question) bool { return len(t.Commands) > 0 })
	question := w.questions[i]
	w.questions = w.questions[i+1:]
	if err := w.recorder.Refill(w.ctx); err != nil {
		return err
	}
	results, err := w.recorder.Run(w.ctx, question.Commands)
	if err != nil {
		return err
	}
	w.all.Merge(results)
	right, err := results.Right(question.Options, w.recorder.Cards)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(strings.Fields(question.Ask), " "), err)
	}
	if right > 0 {
		fmt.Fprintf(&w.out, "%s<!-- answer: %d -->\n", indent, right)
	}
	return nil
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
