package matrix

import (
	"slices"
	"strings"
	"testing"

	"oversell/lab/chaos"
)

// TestExamples checks that the documents have an example of each move. The error of a wrong move lists those that exist.
func TestExamples(t *testing.T) {
	all := strings.Split(examples, ", ")
	for _, subject := range []string{"A ", "server 1 ", ""} {
		_, err := chaos.Parse(subject + "flies")
		_, known, _ := strings.Cut(err.Error(), " does: ")
		for _, phrase := range strings.Split(known, ", ") {
			if !slices.ContainsFunc(all, func(example string) bool { return strings.HasPrefix(example+" ", subject+phrase+" ") }) {
				t.Errorf("view/matrix/plan.go: add %q to the examples, and run make docs", subject+phrase)
			}
		}
	}
}
