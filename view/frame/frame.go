// Package frame has what all HTML files of the commands have in common: the head, the colours, and the style of
// texts and tables. Such a file has no scripts, and needs no other files.
package frame

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
)

//go:embed frame.html.tmpl frame.css
var files embed.FS

// Parse returns the template of a file. The named templates define its title, style and body, and what these use.
func Parse(from fs.FS, name string) *template.Template {
	t := template.Must(template.ParseFS(files, "frame.html.tmpl", "frame.css"))
	return template.Must(t.ParseFS(from, name))
}

// Write writes the file with its data.
func Write(w io.Writer, t *template.Template, data any) error {
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("write html: %w", err)
	}
	return nil
}
