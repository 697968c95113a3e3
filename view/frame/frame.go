// Package frame has what all that people read in a browser has in common: the colours, and the style of texts, tables
// and pictures. It also has the head of the HTML files of the commands, which have no scripts and need no other files.
package frame

import (
	"embed"
	"html/template"
	"io/fs"
)

//go:embed frame.html.tmpl frame.css
var files embed.FS

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
