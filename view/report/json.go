package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes results as one array, which is empty for nil.
func JSON[T any](w io.Writer, all []T) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(append([]T{}, all...)); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}
