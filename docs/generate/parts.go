package main

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"oversell/view/matrix"
)

// generated is a part of a document, between the comments <!-- name --> and <!-- /name -->.
type generated struct {
	file, name string
	write      func(w io.Writer) error
}

// make record writes docs/recorded, and make matrix writes docs/matrix.json.
func generatedParts() []generated {
	const comparison, scenarios = "docs/recorded/comparison.txt", "docs/recorded/scenarios.txt"
	return []generated{
		{"docs/strategies.md", "strategies", writeStrategies("en")},
		{"docs/strategies.zh-CN.md", "strategies", writeStrategies("zh")},
		{"docs/faults.md", "hazards", matrix.WriteHazards},
		{"docs/faults.md", "moves", matrix.WriteMoves},
		{"docs/faults.md", "matrix", writeMatrix},
		{"docs/faults.md", "databases", writeDatabases},
		{"docs/libraries.md", "libraries", writeLibraries},
		{"docs/incidents.md", "incidents", writeIncidents},
		{"docs/course/comparison.md", "costs", writeCosts(false)},
		{"docs/course/zh/comparison.md", "costs", writeCosts(true)},
		{"docs/lab.md", "comparison", block(comparison, "")},
		{"docs/scenarios.md", "scenarios", block(scenarios, "")},
		{"README.md", "sold", block(comparison, "Remaining")},
		{"README.zh-CN.md", "sold", block(comparison, "Remaining")},
	}
}

func writeParts() error {
	for _, part := range generatedParts() {
		if err := part.replace(); err != nil {
			return err
		}
	}
	return writeLibraryDocuments()
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

//go:embed *.md.tmpl
var templates embed.FS

// fill writes a part by its template.
func fill(w io.Writer, name string, data any) error {
	t := template.New(name).Funcs(template.FuncMap{"join": strings.Join})
	return template.Must(t.ParseFS(templates, name)).Execute(w, data)
}

// block writes a recording, or only its table with a column.
func block(file, column string) func(io.Writer) error {
	return func(w io.Writer) error {
		text, err := os.ReadFile(file) //nolint:gosec // two constant paths
		if err != nil {
			return err
		}
		chosen := string(text)
		if column != "" {
			tables := strings.SplitAfter(chosen, "┘\n")
			i := slices.IndexFunc(tables, func(table string) bool { return strings.Contains(table, column) })
			if i < 0 {
				return fmt.Errorf("%s does not have the table that the documents need: run `make record` to measure and write it", file)
			}
			chosen = tables[i]
		}
		_, err = fmt.Fprintf(w, "```text\n%s\n```\n", strings.TrimSpace(chosen))
		return err
	}
}
