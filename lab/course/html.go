package course

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var comments = regexp.MustCompile(`<!--.*?-->`)

// HTML returns a text of a lesson as HTML. A link to a lesson leads to link(name of the lesson). The
// page has no other documents, so other relative links become plain text.
func HTML(markdown string, link func(lesson string) string) (template.HTML, error) {
	var out bytes.Buffer
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(links{link}, 1), util.Prioritized(joined{}, 2))),
	)
	err := md.Convert([]byte(comments.ReplaceAllString(markdown, "")), &out)
	return template.HTML(out.String()), err //nolint:gosec // goldmark escapes HTML, and the text is ours
}

type links struct{ link func(lesson string) string }

func (l links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var relative []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no error: the function returns none
		if a, ok := n.(*ast.Link); ok && entering && !bytes.HasPrefix(a.Destination, []byte("http")) {
			relative = append(relative, a)
		}
		return ast.WalkContinue, nil
	})
	for _, a := range relative {
		if file := string(a.Destination); lessonFile.MatchString(file) {
			a.Destination = []byte(l.link(strings.TrimSuffix(file, ".md")))
			continue
		}
		for a.HasChildren() {
			a.Parent().InsertBefore(a.Parent(), a, a.FirstChild())
		}
		a.Parent().RemoveChild(a.Parent(), a)
	}
}

// joined removes the ends of lines between two Chinese characters, also beside emphasis. A browser shows a blank there.
type joined struct{}

func (joined) Transform(doc *ast.Document, in text.Reader, _ parser.Context) {
	source := in.Source()
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no error: the function returns none
		if t, ok := n.(*ast.Text); ok && entering && t.SoftLineBreak() {
			before, _ := utf8.DecodeLastRune(bytes.TrimRight(source[:t.Segment.Stop], "* "))
			after, _ := utf8.DecodeRune(bytes.TrimLeft(source[t.Segment.Stop:], "\n* "))
			t.SetSoftLineBreak(!wide(before) || !wide(after))
		}
		return ast.WalkContinue, nil
	})
}

// wide reports whether a character is Chinese, or one of its signs.
func wide(r rune) bool {
	return r != utf8.RuneError && r >= '\u2e80' || strings.ContainsRune("“”‘’", r)
}
