package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes results as one array, which is empty for nil.
func JSON[T any](w io.Writer, all []T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(append([]T{}, all...))
}

// WriteLines writes v as JSON for a file that is kept in git: a verdict, with the lists and texts in it, is one
// line. Only what has more levels than that is divided.
func WriteLines(w io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var out bytes.Buffer
	divide(&out, bytes.TrimSpace(text.Bytes()), "\n")
	_, err := fmt.Fprintln(w, out.String())
	return err
}

// divide writes a value in one line if it has few levels, and otherwise each of its parts at the begin of a line. It
// ignores errors of the decoder, since the value is what an encoder has written.
func divide(out *bytes.Buffer, value []byte, line string) {
	const maxLevels = 2 // of lists and objects in one line
	if levels(value) <= maxLevels {
		out.Write(value)
		return
	}
	in := json.NewDecoder(bytes.NewReader(value))
	begin, _ := in.Token()
	out.WriteByte(value[0])
	for separator := ""; in.More(); separator = "," {
		out.WriteString(separator + line + " ")
		if begin == json.Delim('{') {
			name, _ := in.Token()
			fmt.Fprintf(out, "%q:", name)
		}
		var part json.RawMessage
		_ = in.Decode(&part)
		divide(out, part, line+" ")
	}
	out.WriteString(line)
	out.WriteByte(value[len(value)-1])
}

// levels returns how deep lists and objects stand in each other.
func levels(value []byte) (most int) {
	in := json.NewDecoder(bytes.NewReader(value))
	for depth := 0; ; {
		switch token, err := in.Token(); {
		case err != nil:
			return most
		case token == json.Delim('{'), token == json.Delim('['):
			depth++
			most = max(most, depth)
		case token == json.Delim('}'), token == json.Delim(']'):
			depth--
		}
	}
}
