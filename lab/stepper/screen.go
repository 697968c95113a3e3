package stepper

import (
	"fmt"
	"io"
	"strings"

	"oversell/view/terminal"
)

// wide is the width of a client's column in 80 letters, and widest that on a wider screen.
const (
	wide   = 38
	widest = 60
	margin = "  "
	// commandLines limits the length of a command. The page shows more of it.
	commandLines = 3
)

// columnWidth returns the width of a client's column: half of the screen without two margins.
func columnWidth(screen terminal.Screen) int {
	if screen.Width <= 0 {
		return wide
	}
	return min(widest, max(wide/2, screen.Width/2-len(margin)))
}

// Draw prints a column for each client, with its steps, wait or answer, and below them the stock.
func (r *Round) Draw(w io.Writer, screen terminal.Screen) {
	fmt.Fprintf(w, "%s\n\n", screen.Wrap(fmt.Sprintf("%s: A and B buy one piece each; the stock is %d", r.lab.Strategy, Pieces), 0))
	width := columnWidth(screen)
	left, right := r.column(A, width), r.column(B, width)
	height := max(len(left), len(right))
	left = append(left, make([]string, height-len(left))...)
	right = append(right, make([]string, height-len(right))...)
	for i := range height {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s%-*s%s%s", margin, width, left[i], margin, right[i]), " "))
	}
	fmt.Fprintf(w, "\n  stock in the database: %d\n", r.Row)
	if r.Over() {
		fmt.Fprintln(w, margin+r.verdict(screen))
	}
}

func (r *Round) column(client Client, width int) []string {
	column := []string{fmt.Sprintf("%s, on replica-%d", client, client+1), strings.Repeat("-", width-4)}
	last := 0
	for _, entry := range r.Log {
		if entry.Client == client {
			last = len(column)
			column = append(column, entry.lines(margin, width)...)
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

// lines wraps the entry, and its commands below it. Lines after the first are indented.
func (e Entry) lines(prefix string, width int) []string {
	indent := prefix + margin
	lines := terminal.Wrap(prefix+e.String(), width, width-len(indent))
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	for _, command := range e.Commands {
		if letters := []rune(command); len(letters) > commandLines*(width-len(indent)-len("$ ")) {
			command = string(letters[:commandLines*(width-len(indent)-len("$ "))-1]) + "…"
		}
		for i, line := range terminal.Wrap("$ "+command, width-len(indent), width-len(indent)-len("  ")) {
			if i > 0 {
				line = "  " + line
			}
			lines = append(lines, indent+line)
		}
	}
	return lines
}

// String returns the entry as the columns show it.
func (e Entry) String() string {
	if e.Step == "" {
		return e.Text.EN
	}
	return fmt.Sprintf("%-12s%s", e.Step, e.Text.EN)
}

// Print writes the entries of the round from an index on, line by line, and the verdict after the last
// entry.
func (r *Round) Print(w io.Writer, from int, screen terminal.Screen) {
	for i, entry := range r.Log[from:] {
		lines := entry.lines("", wide)
		fmt.Fprintf(w, "%3d  %s  %-*s  stock in the database: %d\n", from+i+1, entry.Client, wide, lines[0], entry.Row)
		for _, line := range lines[1:] {
			fmt.Fprintf(w, "%8s%s\n", "", line)
		}
	}
	if r.Over() {
		fmt.Fprintf(w, "\n%s\n", r.verdict(screen))
	}
}

// verdict returns the sentence about the round, which must be over.
func (r *Round) verdict(screen terminal.Screen) string {
	sign := r.Stock().Verdict.Sign()
	return screen.Paint(sign, screen.Wrap(sign+" "+sentence(r.Stock()).EN, len("  s ")))
}
