package stepper

import (
	"fmt"
	"io"
	"strings"
)

// width is the width of a client's column, in letters.
const width = 38

// Draw prints a column for each client, with its steps, wait or answer, and below them the stock.
func (r *Round) Draw(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: A and B buy one piece each; the stock is %d\n\n", r.lab.Strategy, Pieces)
	left, right := r.column(A), r.column(B)
	height := max(len(left), len(right))
	left = append(left, make([]string, height-len(left))...)
	right = append(right, make([]string, height-len(right))...)
	for i := range height {
		text.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, left[i], right[i]), " ") + "\n")
	}
	fmt.Fprintf(&text, "\n  stock in the database: %d\n", r.Row)
	if end := r.Sentence().EN; end != "" {
		text.WriteString("  " + end + "\n")
	}
	return printf(w, "%s", text.String())
}

func (r *Round) column(client Client) []string {
	column := []string{fmt.Sprintf("%s, on replica-%d", client, client+1), strings.Repeat("-", width-4)}
	last := 0
	for _, entry := range r.Log {
		if entry.Client == client {
			last = len(column)
			column = append(column, wrapped("  "+entry.String())...)
		}
	}
	switch r.State(client) {
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

// Print writes the run that loses an update, line by line, and calls shown after each entry.
func (s Solution) Print(w io.Writer, strategy string, shown func()) error {
	interruptions := fmt.Sprintf("%d interruptions", s.Interruptions)
	if s.Interruptions == 1 {
		interruptions = "1 interruption"
	}
	if !s.Lost {
		return printf(w, "%s: no update was lost in %d runs with up to %s.\n", strategy, s.Tried, interruptions)
	}
	if err := printf(w, "%s: found a lost update with %s, in run %d.\n\n", strategy, interruptions, s.Tried); err != nil {
		return err
	}
	for i, entry := range s.Log {
		if err := printf(w, "%3d  %s  %-*s  stock in the database: %d\n", i+1, entry.Client, width, entry, entry.Row); err != nil {
			return err
		}
		shown()
	}
	return printf(w, "\n%s\n", s.Sentence.EN)
}

func printf(w io.Writer, format string, values ...any) error {
	if _, err := fmt.Fprintf(w, format, values...); err != nil {
		return fmt.Errorf("stepper: %w", err)
	}
	return nil
}
