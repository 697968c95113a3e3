package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the results as one array.
func JSON(w io.Writer, results []Result) error {
	if results == nil {
		results = []Result{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(results); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}
