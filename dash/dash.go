package dash

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzhttp"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/measure"
	"oversell/lab/rig"
	"oversell/view/frame"
	"oversell/view/matrix"
)

//go:embed pages
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// Config has the settings of a Server.
type Config struct {
	// Lab has the addresses of the lab to which the pages send their requests.
	Lab rig.Addresses
	// Binary runs the replicas of separate labs. Empty means that this machine lacks the servers.
	Binary string
	// OnExit is called when a server exits unexpectedly in a lab that a page has started.
	OnExit func(rig.Exit)
	// Program runs the commands of the lessons. Empty means Binary.
	Program string
	// QuickLessons gives the commands of the lessons a small load, for tests.
	QuickLessons bool
	// Share is the address at which phones reach Viewers. Empty means that they cannot.
	Share string
	// Service takes the place of the lab in recorded mode, in which the pages show only recordings: see
	// WriteSite. Nil means a lab.
	Service  http.Handler
	Machine  measure.Machine
	Versions map[string]string
}

// Server serves all the pages of the lab.
type Server struct {
	Config
	hub            *hub.Hub
	jobs           jobs
	catalogue      catalogue
	runs           *runs
	breaks         *breaks
	votes          *votes
	primitivesPage *primitivesPage
	pages          map[string]*template.Template
	routes         *http.ServeMux
	handler        http.Handler
	lifetime       context.Context
	end            context.CancelFunc
}

// New returns a Server. The Server sends no request to the lab before a page is requested.
func New(c Config) *Server {
	s := &Server{Config: c, hub: hub.New(), pages: map[string]*template.Template{}, routes: http.NewServeMux()}
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.catalogue.nginx = api.Client{Base: c.Lab.Target, Token: c.Lab.Token, HTTP: api.Direct()}
	files, _ := fs.Glob(pageFiles, "pages/*.html.tmpl") // no error: the pattern is good
	for _, file := range files {
		if name := strings.TrimSuffix(path.Base(file), ".html.tmpl"); name != "layout" {
			s.pages[name] = parse(name)
		}
	}
	if c.Service != nil {
		s.parseRecorded()
		s.catalogue.nginx = api.Client{Base: "http://service", HTTP: &http.Client{Transport: inProcess{c.Service}}}
	}
	static, _ := fs.Sub(staticFiles, "static") // no error: the folder is embedded
	s.routes.Handle("GET /dash/static/", http.StripPrefix("/dash/static/", http.FileServerFS(static)))
	s.routes.HandleFunc("GET /dash/static/frame.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(frame.Style())
	})
	s.routes.HandleFunc("GET /dash/stream/{topic}", func(w http.ResponseWriter, r *http.Request) { s.hub.Serve(w, r, r.PathValue("topic")) })
	s.routes.HandleFunc("GET /dash/", func(w http.ResponseWriter, r *http.Request) {
		s.showProblem(w, r, reject(http.StatusNotFound, "This page does not exist.", "没有这个页面。"))
	})
	s.routes.HandleFunc("POST /dash/language", switchLanguage)
	// Bookmarks may have the addresses of earlier versions.
	for from, to := range map[string]string{
		"try": "/dash/course/primitives", "shop": "/dash/course/shop", "learn": "/dash/break?all=on", "first": "/dash/course/00-one-minute",
	} {
		s.routes.Handle("GET /dash/"+from, http.RedirectHandler(to, http.StatusMovedPermanently))
	}
	s.routes.HandleFunc("POST /dash/stop", s.withToken(func(ctx context.Context, _ *http.Request) error { s.jobs.stop(ctx); return nil }))
	s.runs = newRuns(s)
	s.breaks = newBreaks(s)
	s.primitivesPage = newPrimitivesPage(s)
	routeStrategies(s)
	newJudgePage(s)
	newSteps(s)
	newScenarioPage(s)
	newCoursePage(s)
	s.votes = newVotes(s)
	if c.Service != nil {
		routeRecorded(s)
	}
	compressed, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false)) // an open stream would need megabytes for zstd
	if err != nil {
		panic(err) // a wrong option
	}
	s.handler = http.NewCrossOriginProtection().Handler(compressed(http.HandlerFunc(s.secured)))
	return s
}

// ServeHTTP makes Server an http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close closes all streams and stops the running job. It returns when the job has cleaned up.
func (s *Server) Close() {
	s.hub.Close()
	s.jobs.stop(context.Background())
	s.end()
	s.primitivesPage.requests.Wait()
}

// policy lets a page load scripts, styles and streams from this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) secured(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	s.routes.ServeHTTP(w, r)
}

type view struct {
	frame.Words
	Page  string // the page's entry in the menu; also its topic, unless Topic is set
	Topic string
	Title api.Text
	Data  any
	parts func() map[string]api.Text
	// Static is true in recorded mode: the page cannot run anything.
	Static bool
}

// HTML returns a picture in the language of the page.
func (v view) HTML(t api.Text) template.HTML { return template.HTML(t.In(v.Lang)) } //nolint:gosec // rendered by our own template

// Part returns the element with this id, with the content that the page's stream sends first.
func (v view) Part(id string) (template.HTML, error) {
	text, there := v.parts()[id]
	if !there {
		return "", fmt.Errorf("dash: page %s has no live part named %q", v.Page, id)
	}
	return v.HTML(text), nil
}

// With returns a copy of the view with other data.
func (v view) With(data any) view { v.Data = data; return v }

func parse(name string) *template.Template {
	t := template.New(name).Funcs(template.FuncMap{
		"list":     func(items ...any) []any { return items },
		"add":      func(a, b int) int { return a + b },
		"markdown": markdown, "inline": inline, "lines": linesOf,
	})
	t = template.Must(t.ParseFS(pageFiles, "pages/layout.html.tmpl", "pages/"+name+".html.tmpl"))
	return template.Must(t.ParseFS(matrix.RunTemplates, "run.html.tmpl"))
}

// parseRecorded replaces the parts of the pages that are different in recorded mode, and adds pages.
func (s *Server) parseRecorded() {
	maps.Copy(s.pages, map[string]*template.Template{"hazard": parse("problem"), "replay": parse("step")})
	for name, t := range s.pages {
		if own, _ := fs.Glob(siteFiles, "site/"+name+".html.tmpl"); len(own) > 0 {
			template.Must(t.ParseFS(siteFiles, own...))
		}
	}
}

func (s *Server) write(w http.ResponseWriter, status int, name string, v view) {
	v.Static = s.Service != nil
	v.parts = sync.OnceValue(func() map[string]api.Text { return s.hub.Parts(cmp.Or(v.Topic, v.Page)) })
	var text bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&text, "layout", v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = text.WriteTo(w)
}

func (s *Server) showProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	s.write(w, p.status, "problem", view{Words: frame.Words{Lang: language(r)}, Title: bilingual("This did not work", "没有成功"), Data: p.Text})
}

// page serves a page, or the problem for an error.
func (s *Server) page(route, name string, of func(r *http.Request) (view, error)) {
	s.routes.HandleFunc("GET "+route, func(w http.ResponseWriter, r *http.Request) {
		v, err := of(r)
		if err != nil {
			s.showProblem(w, r, err)
			return
		}
		v.Lang, v.Page = language(r), cmp.Or(v.Page, name)
		s.write(w, http.StatusOK, name, v)
	})
}

func (s *Server) pageWithGroups(route, name string, title api.Text, data func(r *http.Request, groups []group) any) {
	s.page(route, name, func(r *http.Request) (view, error) {
		cards, err := s.catalogue.all(r.Context())
		if err != nil {
			return view{}, err
		}
		return view{Title: title, Data: data(r, groupsOf(cards))}, nil
	})
}

// part returns a message that replaces a part of the open pages. The template name draws the part.
func (s *Server) part(page, name string, data any) hub.Message {
	return hub.Replace(s.render(page, name, name, data))
}

func (s *Server) render(page, name, id string, data any) hub.Part {
	return hub.Part{ID: id, Text: inBoth(func(lang string) template.HTML {
		return frame.Inline(s.pages[page].Lookup(name), view{Words: frame.Words{Lang: lang}, Page: page, Data: data})
	})}
}

// inBoth returns what draw returns for each language.
func inBoth(draw func(lang string) template.HTML) api.Text {
	return bilingual(string(draw("en")), string(draw("zh")))
}

type problem struct {
	status int
	api.Text
}

func (p problem) Error() string { return p.EN }

func reject(status int, en, zh string, values ...any) error {
	return problem{status, api.Textf(en, zh, values...)}
}

func badRequest(en, zh string, values ...any) error {
	return reject(http.StatusBadRequest, en, zh, values...)
}

func problemOf(err error) problem {
	p := problem{http.StatusInternalServerError, failure(err)}
	errors.As(err, &p)
	return p
}

// withToken returns a handler of forms that require the lab's token.
func (s *Server) withToken(do func(context.Context, *http.Request) error) http.HandlerFunc {
	return s.answered(func(ctx context.Context, r *http.Request) error {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(api.TokenHeader)), []byte(s.Lab.Token)) != 1 {
			return reject(http.StatusForbidden, "This requires the lab's token: open the link that the lab printed.", "需要实验室的访问口令：请打开实验室打印的链接。")
		}
		return do(ctx, r)
	})
}

// answered returns a handler of forms: it answers 204, or a problem for an error.
func (s *Server) answered(do func(context.Context, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		err := badRequest("The form cannot be read.", "表单无法读取。")
		if r.ParseForm() == nil {
			err = do(r.Context(), r)
		}
		if err != nil {
			s.refuse(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// refuse answers with the problem of err, in both languages.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	p := problemOf(err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(p.status), "status": p.status, "detail": p.EN, "detail_zh": p.ZH,
	})
}

// sender returns the address of the request's sender. nginx passes the address on in a header.
func sender(r *http.Request) string {
	who, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		who = r.RemoteAddr
	}
	// Believe the header only from nginx, which is on this machine or in its private network. Any
	// other sender could forge the header.
	if ip := net.ParseIP(who); ip != nil && (ip.IsLoopback() || ip.IsPrivate()) {
		if forwarded := r.Header.Get("X-Forwarded-For"); net.ParseIP(forwarded) != nil {
			who = forwarded
		}
	}
	return who
}

func switchLanguage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	lang, back := r.FormValue("lang"), r.FormValue("back")
	if lang != "en" && lang != "zh" {
		http.Error(w, "lang must be en or zh", http.StatusBadRequest)
		return
	}
	if !ourPath(back) {
		back = "/"
	}
	http.SetCookie(w, &http.Cookie{Name: langCookie, Value: lang, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode, HttpOnly: true}) //nolint:gosec // a language is no secret, and the lab uses HTTP
	http.Redirect(w, r, back, http.StatusSeeOther)                                                                                                     //nolint:gosec // ourPath accepts only paths of this host
}

// ourPath reports whether a redirect to back stays on this host. It rejects //elsewhere,
// /\elsewhere and /<tab>/elsewhere, which browsers read as another host: they drop the tab.
func ourPath(back string) bool {
	to, err := url.Parse(back) // returns an error for control characters
	return err == nil && to.Scheme == "" && to.Host == "" &&
		strings.HasPrefix(back, "/") && !strings.HasPrefix(back, "//") && !strings.Contains(back, `\`)
}
