package main

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/jedib0t/go-pretty/v6/text"

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
		{"docs/faults.md", "matrix", writeMatrix},
		{"docs/faults.md", "databases", writeDatabases},
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
