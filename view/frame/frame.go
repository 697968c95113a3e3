// Package frame has what all that people read in a browser has in common: the colours, and the style of texts, tables
// and pictures. It also has the head of the HTML files of the commands, which have no scripts and need no other files.
package frame

import (
	"embed"
	"html/template"
	"io/fs"
	"strings"

	"oversell/api"
)

//go:embed frame.html.tmpl frame.css
var files embed.FS

// Words chooses the words of a template, by the language: en or zh. The data of a template embed it.
type Words struct{ Lang string }

// T returns the English or the Chinese words.
func (w Words) T(en, zh string) string { return w.In(api.Text{EN: en, ZH: zh}) }

// In returns a text in the language.
func (w Words) In(t api.Text) string { return t.In(w.Lang) }

// Inline returns what a template makes of data, for a page, or its error as a text.
func Inline(t *template.Template, data any) template.HTML {
	var text strings.Builder
	if err := t.Execute(&text, data); err != nil {
		return template.HTML(template.HTMLEscapeString(err.Error())) //nolint:gosec // escaped
	}
	return template.HTML(text.String()) //nolint:gosec // escaped by its own template
}

// Style returns the style sheet, for pages that link it.
func Style() []byte {
	css, _ := files.ReadFile("frame.css") // it exists: it is embedded
	return css
}

// Parse returns the template of a file. The named templates define its title, style and body, and what these use.
func Parse(from fs.FS, name string) *template.Template {
	t := template.Must(template.ParseFS(files, "frame.html.tmpl", "frame.css"))
	return template.Must(t.ParseFS(from, name))
}
