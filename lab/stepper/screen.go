package stepper

import (
	"fmt"
	"io"
	"strings"
)

// width is the width of a client's column, in letters.
const width = 38

// Draw prints the state of the round: a column for each client, with its steps, its wait or
// its answer, and the row's count.
func (r *Round) Draw(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: A and B buy one piece each of %d\n\n", r.lab.Strategy, Pieces)
	columns := [2][]string{r.column(A), r.column(B)}
	for i := range max(len(columns[A]), len(columns[B])) {
		left, right := cell(columns[A], i), cell(columns[B], i)
		text.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, left, right), " ") + "\n")
	}
	fmt.Fprintf(&text, "\n  the row: %d\n", r.Row)
	if end := r.Sentence().EN; end != "" {
		text.WriteString("  " + end + "\n")
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("stepper: %w", err)
	}
	return nil
}

func cell(column []string, i int) string {
	if i < len(column) {
		return column[i]
	}
	return ""
}

// column returns the column of a client; > marks the step at which it is stopped.
func (r *Round) column(who Who) []string {
	column := []string{fmt.Sprintf("%s, on replica-%d", who, who+1), strings.Repeat("-", width-4)}
	last := 0
	for _, l := range r.Log {
		if l.Who == who {
			last = len(column)
			column = append(column, wrapped("  "+l.String())...)
		}
	}
	switch r.State(who) {
	case Idle:
		column = append(column, "> has sent no request yet")
	case Stopped:
		column[last] = ">" + column[last][1:]
	case Waiting, Ended:
	}
	return column
}

// String returns the entry as the columns show it.
func (e Entry) String() string {
	if e.Step == "" {
		return e.Words.EN
	}
	return fmt.Sprintf("%-12s%s", e.Step, e.Words.EN)
}

// wrapped breaks a line that does not fit into a column.
func wrapped(line string) []string {
	letters := []rune(line)
	if len(letters) <= width {
		return []string{line}
	}
	at := width
	for i := width; i > width/2; i-- {
		if letters[i] == ' ' {
			at = i
			break
		}
	}
	rest := strings.TrimSpace(string(letters[at:]))
	return append([]string{string(letters[:at])}, wrapped("    "+rest)...)
}

// Print writes the run that loses an update, one line for each step. It calls shown after
// each line.
func (s Solution) Print(w io.Writer, strategy string, shown func()) error {
	tell := func(format string, args ...any) error {
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return fmt.Errorf("stepper: %w", err)
		}
		return nil
	}
	if !s.Lost {
		return tell("%s: none of %d schedules, with up to %s, loses an update. Each was a real run.\n",
			strategy, s.Tried, interruptions(s.Interruptions))
	}
	if err := tell("%s: the shortest way to lose an update has %s (%d schedules tried).\n\n",
		strategy, interruptions(s.Interruptions), s.Tried); err != nil {
		return err
	}
	for i, l := range s.Log {
		if err := tell("%3d  %s  %-*s  the row: %d\n", i+1, l.Who, width, l, l.Row); err != nil {
			return err
		}
		shown()
	}
	return tell("\n%s\n", s.Sentence.EN)
}

func interruptions(n int) string {
	if n == 1 {
		return "1 interruption"
	}
	return fmt.Sprintf("%d interruptions", n)
}
