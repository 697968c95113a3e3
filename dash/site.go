package dash

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed site
var siteFiles embed.FS

// WriteSite writes the pages in recorded mode into a folder, in English, and in Chinese into its folder zh.
// The pages open from files. The folder static has what both languages share. service answers the requests
// for the cards; it needs no backends. sizes are those of the files in bytes.
func WriteSite(folder string, service http.Handler) (sizes map[string]int, err error) {
	s := New(Config{Service: service})
	defer s.Close()
	cards, err := s.catalogue.all(s.lifetime)
	if err != nil {
		return nil, fmt.Errorf("write the site: %w", err)
	}
	s.breaks.showRecorded(cards)
	sizes = map[string]int{}
	for _, lang := range []string{"en", "zh"} {
		queue, seen := []string{"/"}, map[string]bool{"/": true}
		for ; len(queue) > 0; queue = queue[1:] {
			file, text, pages, err := s.draw(queue[0], lang)
			if err == nil {
				name := filepath.Join(folder, filepath.FromSlash(file))
				sizes[name] = len(text)
				err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, 0o644)) //nolint:gosec // pages that everybody may read
			}
			if err != nil {
				return nil, fmt.Errorf("write the site: %s: %w", queue[0], err)
			}
			for _, page := range pages {
				if !seen[page] {
					seen[page], queue = true, append(queue, page)
				}
			}
		}
	}
	return sizes, nil
}

// draw returns the file of a page with its text, and the pages to which its links lead.
func (s *Server) draw(page, lang string) (file string, text []byte, pages []string, err error) {
	r, err := http.NewRequestWithContext(s.lifetime, http.MethodGet, page, nil)
	if err != nil {
		return "", nil, nil, err
	}
	r.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return "", nil, nil, fmt.Errorf("status %d: %s", w.Code, w.Body.Bytes())
	}
	text, file = w.Body.Bytes(), fileIn(page, lang)
	if path.Ext(file) == ".html" {
		text, pages = relink(text, page, lang)
	}
	return file, text, pages, nil
}

// inProcess answers requests without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip makes inProcess an http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

var ourLink = regexp.MustCompile(`(href|src)="(/[^"]*)"`)

// relink lets the links of a page lead to files, and returns the pages to which they lead.
func relink(text []byte, page, lang string) (relinked []byte, pages []string) {
	folder := path.Dir(fileIn(page, lang))
	relinked = ourLink.ReplaceAllFunc(text, func(found []byte) []byte {
		part := ourLink.FindSubmatch(found)
		to, anchor, anchored := strings.Cut(string(part[2]), "#")
		target := fileIn(to, lang)
		if other, translated := strings.CutPrefix(to, "/translation/"); translated {
			target = fileIn(page, other)
		} else {
			pages = append(pages, pageOf(to))
		}
		if anchored {
			target += "#" + anchor
		}
		relative, _ := filepath.Rel(folder, target) // no error: both are relative to the site
		return fmt.Appendf(nil, `%s="%s"`, part[1], filepath.ToSlash(relative))
	})
	return relinked, pages
}

// pageOf returns the page to which a link leads. The results of a hazard are on one page.
func pageOf(link string) string {
	page, _, _ := strings.Cut(link, "?")
	if rest, is := strings.CutPrefix(page, "/dash/break/"); is {
		hazard, _, _ := strings.Cut(rest, "/")
		return "/dash/break/" + hazard
	}
	return page
}

// fileIn returns the file of a page from the folder of the site.
func fileIn(page, lang string) string {
	file := fileOf(page)
	if lang == "zh" && !strings.HasPrefix(file, "static/") {
		return "zh/" + file
	}
	return file
}

// fileOf returns the file of a page in English, such as learn/redis.html for /dash/learn/redis. A result is
// a part of the page of its hazard.
func fileOf(page string) string {
	names := strings.Trim(strings.TrimPrefix(page, "/dash"), "/")
	if strings.HasPrefix(names, "static/") {
		return names
	}
	names, fenced := strings.CutSuffix(names, "?fenced=true")
	menu, name, _ := strings.Cut(names, "/")
	anchor := ""
	if menu == "break" {
		name, anchor, _ = strings.Cut(name, "/")
	}
	file := path.Join(menu, cmp.Or(name, "index")+".html")
	if fenced {
		anchor += "-fenced"
	}
	if anchor != "" {
		file += "#" + anchor
	}
	return file
}
