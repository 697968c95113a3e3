package history

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
)

// Decompress reads a recording of docs/recorded, which is compressed JSON, into the value at to.
func Decompress(compressed []byte, to any) error {
	in, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	if err := json.NewDecoder(in).Decode(to); err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	return nil
}
