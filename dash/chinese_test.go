package dash_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"oversell/api"
	"oversell/lab/experiment"
)

var (
	han  = regexp.MustCompile(`\p{Han}`)
	word = regexp.MustCompile(`[A-Za-z]{2,}`)
	// names are the same in both languages: files, options, servers, libraries, units, and English.
	names = regexp.MustCompile(`(?i)\S+\.(go|lua)\b|--\w+|\d+ms\b|\b(replica-\d|oversell|English|nginx|db_stock|count|MySQL|MariaDB|Redis|Redisson|Redlock|ZooKeeper|Curator|etcd|Go|JSON|CSV|JTL|HTML|ms|p50|p99)\b`)
)

// inChinese checks that a Chinese browser gets no text in English. Code, ids and names are the same in
// both languages.
func inChinese(t *testing.T, address func(path string) string) {
	t.Helper()
	status, body := send(t, http.MethodGet, "/strategies", "", nil)
	var cards []api.Card
	if err := json.Unmarshal([]byte(body), &cards); err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	paths := append(allPages(), "/dash/break/none-such/redis", "/dash/course/none-such")
	var ids []string
	for _, c := range cards {
		ids = append(ids, c.ID, c.Source)
		paths = append(paths, "/dash/learn/"+c.ID)
	}
	for _, hazard := range experiment.Hazards() {
		ids = append(ids, string(hazard))
		paths = append(paths, "/dash/break/"+string(hazard)+"/redis", "/dash/break/"+string(hazard)+"/redis?fenced=true")
	}
	_, course := send(t, http.MethodGet, "/dash/course", "", nil)
	for _, link := range regexp.MustCompile(`href="(/dash/course/[^"]+)"`).FindAllStringSubmatch(course, -1) {
		paths = append(paths, link[1])
	}
	slices.SortFunc(ids, func(a, b string) int { return len(b) - len(a) })
	for _, path := range paths {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Language", "zh-CN")
		status, body := exchange(t, req)
		if status == http.StatusNotFound && !strings.Contains(path, "none-such") {
			t.Errorf("%s: there is no such page: is its function called in New of dash.go?", path)
		}
		page, err := html.Parse(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(page) {
			rest := text
			for _, id := range ids {
				rest = strings.ReplaceAll(rest, id, "")
			}
			if word.MatchString(names.ReplaceAllString(rest, "")) && !han.MatchString(text) {
				t.Errorf("%s is not translated: %q", path, text)
			}
		}
	}
}

// texts returns the texts of a page: one for each block, such as a paragraph, and for each attribute
// that a reader sees or hears. It leaves out code.
func texts(page *html.Node) (all []string) {
	var block strings.Builder
	end := func() {
		all = append(all, strings.TrimSpace(block.String()))
		block.Reset()
	}
	inline := []atom.Atom{atom.A, atom.Strong, atom.Em, atom.Span, atom.B, atom.I, atom.Abbr}
	code := []atom.Atom{atom.Script, atom.Style, atom.Code, atom.Pre, atom.Kbd}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			block.WriteString(n.Data)
			return
		}
		if slices.Contains(code, n.DataAtom) {
			return
		}
		separate := n.Type == html.ElementNode && !slices.Contains(inline, n.DataAtom)
		if separate {
			end()
		}
		for _, a := range n.Attr {
			if slices.Contains([]string{"aria-label", "title", "placeholder", "alt"}, a.Key) {
				all = append(all, a.Val)
			}
		}
		for child := range n.ChildNodes() {
			walk(child)
		}
		if separate {
			end()
		}
	}
	walk(page)
	return all
}
