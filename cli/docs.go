package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/matrix"
	"oversell/locks/catalog"
)

// generated is a part of a document that a program writes, between the comments
// <!-- name --> and <!-- /name -->.
type generated struct {
	file, name string
	write      func(w io.Writer) error
}

// generatedParts lists them all. Recordings are in docs/recorded and docs/matrix.json:
// make record and make matrix measure them anew.
func generatedParts() []generated {
	const comparison, scenarios = "docs/recorded/comparison.txt", "docs/recorded/scenarios.txt"
	return []generated{
		{"docs/strategies.md", "strategies", func(w io.Writer) error { return writeStrategies(w, false) }},
		{"docs/strategies.zh-CN.md", "strategies", func(w io.Writer) error { return writeStrategies(w, true) }},
		{"docs/faults.md", "matrix", writeMatrix},
		{"docs/lab.md", "comparison", func(w io.Writer) error { return writeBlock(w, comparison, wrapped) }},
		{"docs/scenarios.md", "scenarios", func(w io.Writer) error { return writeBlock(w, scenarios, wrapped) }},
		{"README.md", "sold", func(w io.Writer) error { return writeBlock(w, comparison, tableOf("Remaining")) }},
		{"README.zh-CN.md", "sold", func(w io.Writer) error { return writeBlock(w, comparison, tableOf("Remaining")) }},
	}
}

// docsCommand writes the documents' generated parts. Users have no need for it, so it is
// hidden.
func docsCommand() *cobra.Command {
	var record string
	cmd := &cobra.Command{
		Use:    "docs",
		Short:  "write the generated parts of the documents in this folder anew",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			if record != "" {
				if err := recordClaims(record); err != nil {
					return fmt.Errorf("docs: %w", err)
				}
			}
			for _, part := range generatedParts() {
				if err := part.put(); err != nil {
					return fmt.Errorf("docs: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&record, "record", "", "first put the results of `FILE`, by break --json, into docs/matrix.json")
	return cmd
}

const recordedMatrix = "docs/matrix.json"

// recordClaims puts the results of some strategies into the recorded matrix.
func recordClaims(newer string) error {
	m, about, err := readMatrix(recordedMatrix)
	if err != nil {
		return err
	}
	some, _, err := readMatrix(newer)
	if err != nil {
		return err
	}
	m.Record(some)
	var out bytes.Buffer
	if err := m.WriteJSON(&out, about); err != nil {
		return err
	}
	return os.WriteFile(recordedMatrix, out.Bytes(), 0o644) //nolint:gosec // a document
}

func readMatrix(path string) (m matrix.Matrix, about matrix.About, err error) {
	f, err := os.Open(path) //nolint:gosec // a file of this repository, or the one that was named
	if err != nil {
		return m, about, err
	}
	defer func() { _ = f.Close() }()
	return matrix.ReadMatrix(f)
}

// put writes the part into its file.
func (g generated) put() error {
	file := filepath.FromSlash(g.file)
	before, err := os.ReadFile(file) //nolint:gosec // of the list above
	if err != nil {
		return err
	}
	begin, end := "<!-- "+g.name+" -->\n", "<!-- /"+g.name+" -->\n"
	head, rest, begins := strings.Cut(string(before), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no part between %q and %q", g.file, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	var part bytes.Buffer
	if err := g.write(&part); err != nil {
		return fmt.Errorf("%s: %w", g.file, err)
	}
	now := head + begin + "\n" + strings.TrimSpace(part.String()) + "\n\n" + end + tail
	if now == string(before) {
		return nil
	}
	return os.WriteFile(file, []byte(now), 0o644) //nolint:gosec // a document, which everybody may read
}

func writeStrategies(w io.Writer, inChinese bool) error {
	var cards []api.Card
	for _, s := range catalog.Strategies(catalog.Backends{}) {
		cards = append(cards, s.Card())
	}
	return printMarkdown(w, cards, inChinese)
}

func writeMatrix(w io.Writer) error {
	m, about, err := readMatrix(recordedMatrix)
	if err != nil {
		return err
	}
	return m.WriteMarkdown(w, about)
}

// writeBlock writes what is chosen of a file as a block of text.
func writeBlock(w io.Writer, file string, choose func(whole string) string) error {
	recorded, err := os.ReadFile(file) //nolint:gosec // two constant paths
	if err != nil {
		return err
	}
	chosen := choose(string(recorded))
	if chosen == "" {
		return fmt.Errorf("%s has not what is wanted of it: make record writes it anew", file)
	}
	_, err = fmt.Fprintf(w, "```text\n%s\n```\n", strings.TrimSpace(chosen))
	return err
}

// wrapped is all of the text, in lines that fit a page.
func wrapped(whole string) string {
	const maxWidth = 100
	trailing := regexp.MustCompile(`(?m) +$`)
	lines := strings.Split(whole, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "│") {
			lines[i] = trailing.ReplaceAllString(text.WrapSoft(line, maxWidth), "")
		}
	}
	return strings.Join(lines, "\n")
}

// tableOf chooses the table that has a column.
func tableOf(column string) func(whole string) string {
	return func(whole string) string {
		for _, table := range strings.SplitAfter(whole, "┘\n") {
			if _, inside, ok := strings.Cut(table, "┌"); ok && strings.Contains(inside, column) {
				return "┌" + inside
			}
		}
		return ""
	}
}
