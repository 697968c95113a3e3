// Package terminal fits text to the terminal that shows it: its width and its colours.
package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Screen describes where text is shown. The zero Screen is a file: no limit, no colours.
type Screen struct {
	Width int  // in characters; 0 means no limit
	Color bool // a sign or a word says the same, for readers who see no colours
	Moves bool // the cursor can be moved, so a line can be drawn again
}

// Of describes the screen behind w. It has no colours with NO_COLOR, and none without a terminal.
func Of(w io.Writer) Screen {
	var screen Screen
	if file, ok := w.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(file.Fd())) {
		screen.Moves = os.Getenv("TERM") != "dumb"
		screen.Color = screen.Moves && os.Getenv("NO_COLOR") == ""
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			screen.Width = width
		}
	}
	// An exported COLUMNS has precedence over the terminal's width, and also works for a file.
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		screen.Width = width
	}
	return screen
}

// The signs of all verdicts, here and on the page.
const (
	Good         = "✓" // safe, or an invariant held
	Bad          = "✗" // broken or stalled
	Costly       = "▲" // correct, but at a cost
	Inconclusive = "?" // inconclusive
)

// Paint returns words in the colour of a sign: green, red, amber or grey.
func (s Screen) Paint(sign, words string) string {
	color, ok := map[string]string{Good: "32", Bad: "1;31", Costly: "33", Inconclusive: "90"}[sign]
	if !ok || !s.Color || words == "" {
		return words
	}
	return "\x1b[" + color + "m" + words + "\x1b[0m"
}

// Wrap breaks a line at words, so that it fits the screen. Later lines begin with indent spaces.
func (s Screen) Wrap(line string, indent int) string {
	if s.Width <= 0 {
		return line
	}
	lines := Wrap(line, s.Width, max(1, s.Width-indent))
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// Wrap returns the lines of a text: the first of at most first characters, the others of at most
// rest. It breaks at spaces, and beside Chinese characters. Longer words are cut.
func Wrap(words string, first, rest int) []string {
	var lines []string
	line, width := "", first
	end := func() {
		lines = append(lines, strings.TrimRight(line, " "))
		line, width = "", rest
	}
	for _, piece := range pieces(words) {
		if line != "" && text.StringWidth(line+strings.TrimRight(piece, " ")) > width {
			end()
		}
		for text.StringWidth(strings.TrimRight(piece, " ")) > width {
			part := []rune(text.Trim(piece, width))
			line, piece = string(part), string([]rune(piece)[len(part):])
			end()
		}
		line += piece
	}
	if line = strings.TrimRight(line, " "); line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// pieces cuts a text after each run of spaces, and before and after each wide character. A wide
// closing mark, such as a full stop, stays with the character before it.
func pieces(words string) (all []string) {
	piece, wide := "", false
	for _, r := range words {
		isWide := text.RuneWidth(r) > 1
		breaks := piece != "" && (isWide || wide || strings.HasSuffix(piece, " ")) && r != ' ' && !strings.ContainsRune("，。：；！？、）”》", r)
		if breaks && strings.TrimSpace(piece) != "" {
			all = append(all, piece)
			piece = ""
		}
		piece += string(r)
		wide = isWide
	}
	return append(all, piece)
}

// Number writes thousands with commas: 4,901.
func Number(n int) string { return message.NewPrinter(language.English).Sprint(n) }
