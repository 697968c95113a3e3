package docs_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root folder of the checkout: they name all files from there, as the documents do.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
