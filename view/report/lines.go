package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteLines writes v as JSON for a file that is kept in git: a verdict, with the lists and texts in it, is one
// line. Only what has more levels than that is divided.
func WriteLines(w io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	if _, err := w.Write(divided(text.Bytes())); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// divided adds the ends of lines to JSON that has none.
func divided(text []byte) []byte {
	const maxLevels = 2 // of lists and objects in one line
	signs, levels := structure(text)
	var out bytes.Buffer
	var within []bool // whether each open list or object is divided
	newLine := func() { out.WriteString("\n" + strings.Repeat(" ", len(within))) }
	written := 0
	for _, at := range signs {
		out.Write(text[written:at])
		written = at + 1
		switch sign := text[at]; sign {
		case '{', '[':
			out.WriteByte(sign)
			within = append(within, levels[at] > maxLevels)
			if within[len(within)-1] {
				newLine()
			}
		case '}', ']':
			isDivided := within[len(within)-1]
			within = within[:len(within)-1]
			if isDivided {
				newLine()
			}
			out.WriteByte(sign)
		default:
			out.WriteByte(sign)
			if len(within) > 0 && within[len(within)-1] {
				newLine()
			}
		}
	}
	out.Write(text[written:])
	return out.Bytes()
}

// structure returns the positions of the brackets and commas outside of strings, and for each opening bracket
// how many levels of lists and objects it begins.
func structure(text []byte) (signs []int, levels map[int]int) {
	levels = map[int]int{}
	var open []int
	inString, escaped := false, false
	for at, c := range text {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{', c == '[':
			signs, open = append(signs, at), append(open, at)
			levels[at] = 1
		case c == '}', c == ']':
			ended := open[len(open)-1]
			signs, open = append(signs, at), open[:len(open)-1]
			if len(open) > 0 {
				around := open[len(open)-1]
				levels[around] = max(levels[around], levels[ended]+1)
			}
		case c == ',':
			signs = append(signs, at)
		}
	}
	return signs, levels
}
