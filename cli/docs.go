package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/matrix"
	"oversell/locks/catalog"
)

// generated is a part of a document, between the comments <!-- name --> and <!-- /name -->.
type generated struct {
	file, name string
	write      func(w io.Writer) error
}

// make record writes docs/recorded, and make matrix writes docs/matrix.json.
func generatedParts() []generated {
	const comparison, scenarios = "docs/recorded/comparison.txt", "docs/recorded/scenarios.txt"
	strategies := func(inChinese bool) func(io.Writer) error {
		return func(w io.Writer) error {
			searches, err := readSearches()
			if err != nil {
				return err
			}
			return printMarkdown(w, catalog.Cards(), searches.Sentences, inChinese)
		}
	}
	return []generated{
		{"docs/strategies.md", "strategies", strategies(false)},
		{"docs/strategies.zh-CN.md", "strategies", strategies(true)},
		{"docs/faults.md", "matrix", writeMatrix},
		{"docs/faults.md", "databases", writeDatabases},
		{"docs/production.md", "speeds", writeSpeeds},
		{"docs/libraries.md", "libraries", writeLibraries},
		{"docs/incidents.md", "incidents", writeIncidents},
		{"docs/course/comparison.md", "costs", writeCosts(false)},
		{"docs/course/zh/comparison.md", "costs", writeCosts(true)},
		{"docs/lab.md", "comparison", block(comparison, wrapped)},
		{"docs/scenarios.md", "scenarios", block(scenarios, wrapped)},
		{"README.md", "sold", block(comparison, verdictsAnd("Remaining"))},
		{"README.zh-CN.md", "sold", block(comparison, verdictsAnd("Remaining"))},
	}
}

// docsCommand writes the generated parts of the documents. Only developers need this command.
func docsCommand() *cobra.Command {
	var record, runs, searches, databases string
	cmd := &cobra.Command{
		Use:    "docs",
		Short:  "Write the generated parts of the documents in this folder again",
		Args:   noArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, first := range []struct {
				from   string
				record func(from string) error
			}{
				{record, recordClaims},
				{runs, recordRuns},
				{searches, recordSearches},
				{databases, func(from string) error { return recordDatabases(cmd.Context(), from) }},
			} {
				if first.from == "" {
					continue
				}
				if err := first.record(first.from); err != nil {
					return fmt.Errorf("docs: %w", err)
				}
			}
			for _, part := range generatedParts() {
				if err := part.replace(); err != nil {
					return fmt.Errorf("docs: %w", err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&record, "record", "", "first add the results of `FILE`, from break --json, to docs/matrix.json")
	cmd.Flags().StringVar(&runs, "runs", "", "first copy one run for each verdict from `FOLDER`, of break --keep, to "+recordedRuns)
	cmd.Flags().StringVar(&searches, "searches", "", "first add the results of `FILE`, from explore --all --json, to "+recordedSearches)
	cmd.Flags().StringVar(&databases, "databases", "", "first write the results in the folders of `FOLDER`, of make databases, to "+recordedDatabases)
	return cmd
}

const recordedMatrix = "docs/matrix.json"

// recordClaims adds newer's results to docs/matrix.json, in place of older ones of the same claims.
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
	slices.SortFunc(m.Rows, func(a, b matrix.Row) int { return rowPosition(a) - rowPosition(b) })
	var out bytes.Buffer
	if err := m.WriteJSON(&out, about); err != nil {
		return err
	}
	return os.WriteFile(recordedMatrix, out.Bytes(), 0o644) //nolint:gosec // a document
}

// rowPosition sorts rows in the order of the catalogue, all rows with a fence after all rows without.
func rowPosition(r matrix.Row) int {
	cards := catalog.Cards()
	position := slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == r.Strategy })
	if r.Fenced {
		position += len(cards)
	}
	return position
}

func readMatrix(path string) (m matrix.Matrix, about matrix.About, err error) {
	recorded, err := os.ReadFile(path) //nolint:gosec // a file of this repository, or the one that was named
	if err != nil {
		return m, about, err
	}
	return matrix.ReadMatrix(bytes.NewReader(recorded))
}

func writeMatrix(w io.Writer) error {
	m, about, err := readMatrix(recordedMatrix)
	if err != nil {
		return err
	}
	return m.WriteMarkdown(w, about)
}

func (g generated) replace() error {
	file := filepath.FromSlash(g.file)
	before, err := os.ReadFile(file) //nolint:gosec // of the list above
	if err != nil {
		return err
	}
	begin, end := "<!-- "+g.name+" -->\n", "<!-- /"+g.name+" -->\n"
	head, rest, begins := strings.Cut(string(before), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s does not have the marks %q and %q", g.file, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	var part bytes.Buffer
	if err := g.write(&part); err != nil {
		return fmt.Errorf("%s: %w", g.file, err)
	}
	now := head + begin + "\n" + strings.TrimSpace(part.String()) + "\n\n" + end + tail
	return os.WriteFile(file, []byte(now), 0o644) //nolint:gosec // a document, which everybody may read
}

func block(file string, choose func(recording string) string) func(io.Writer) error {
	return func(w io.Writer) error {
		recording, err := os.ReadFile(file) //nolint:gosec // two constant paths
		if err != nil {
			return err
		}
		chosen := choose(string(recording))
		if chosen == "" {
			return fmt.Errorf("%s does not have the table that the documents need: run `make record` to measure and write it", file)
		}
		_, err = fmt.Fprintf(w, "```text\n%s\n```\n", strings.TrimSpace(chosen))
		return err
	}
}

func wrapped(recording string) string {
	trailing := regexp.MustCompile(`(?m) +$`)
	lines := strings.Split(recording, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "│") {
			lines[i] = trailing.ReplaceAllString(text.WrapSoft(line, 100), "")
		}
	}
	return strings.Join(lines, "\n")
}

// verdictsAnd chooses the verdicts, and the table with the column.
func verdictsAnd(column string) func(recording string) string {
	return func(recording string) string {
		verdicts, _, _ := strings.Cut(recording, "┌")
		for _, table := range strings.SplitAfter(recording, "┘\n") {
			if _, inside, ok := strings.Cut(table, "┌"); ok && strings.Contains(inside, column) {
				return verdicts + "┌" + inside
			}
		}
		return ""
	}
}
