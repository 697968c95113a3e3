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
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"oversell/api"
	"oversell/lab/report"
	"oversell/lab/rig"
)

//go:embed pages
var pageFiles embed.FS

//go:embed static
var staticFiles embed.FS

// Config is what a page is for.
type Config struct {
	// Shop is the lab that is run, stepped through and tried.
	Shop rig.Addresses
	// Binary is the program whose replicas are broken, in a lab of their own; empty: this
	// machine has no servers for one.
	Binary string
	// OnExit is told when a server of such a lab dies unasked.
	OnExit   func(rig.Exit)
	Machine  report.Machine
	Versions map[string]string
}

// Server is the page.
type Server struct {
	Config
	hub            *hub
	jobs           jobs
	catalogue      catalogue
	runs           *runs
	breaks         *breaks
	strategyPages  *strategyPages
	steps          *steps
	primitivesPage *primitivesPage
	scenarioPage   *scenarioPage
	pages          map[string]*template.Template
	routes         *http.ServeMux
	handler        http.Handler
	lifetime       context.Context
	end            context.CancelFunc
}

// New prepares the page. Nothing is asked of the lab before somebody comes.
func New(c Config) *Server {
	s := &Server{Config: c, hub: newHub(), pages: map[string]*template.Template{}, routes: http.NewServeMux()}
	s.lifetime, s.end = context.WithCancel(context.Background())
	s.catalogue.shop = c.Shop
	s.runs = newRuns(s)
	s.breaks = newBreaks(s)
	s.strategyPages = newStrategyPages(s)
	s.steps = newSteps(s)
	s.primitivesPage = newPrimitivesPage(s)
	s.scenarioPage = newScenarioPage(s)
	for _, name := range []string{"run", "break", "result", "step", "learn", "lesson", "try", "shop", "problem"} {
		s.pages[name] = parse(name)
	}
	static, _ := fs.Sub(staticFiles, "static") // it is there: it was embedded
	s.routes.Handle("GET /dash/static/", http.StripPrefix("/dash/static/", http.FileServerFS(static)))
	s.routes.HandleFunc("GET /dash/stream/{topic}", func(w http.ResponseWriter, r *http.Request) { s.hub.serve(w, r, r.PathValue("topic")) })
	s.routes.HandleFunc("POST /dash/language", s.switchLanguage)
	s.routes.HandleFunc("POST /dash/stop", s.guarded(func(ctx context.Context, _ request) error { s.jobs.stop(ctx); return nil }))
	s.runs.route()
	s.breaks.route()
	s.strategyPages.route()
	s.steps.route()
	s.primitivesPage.route()
	s.scenarioPage.route()
	s.handler = http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.secured))
	return s
}

// ServeHTTP makes the page an http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends the streams and what runs, and returns when that has cleaned up.
func (s *Server) Close() {
	s.hub.close()
	s.jobs.stop(context.Background())
	s.end()
	s.primitivesPage.close()
}

// policy lets a page have its own script, style and streams, and nothing from elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) secured(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	s.routes.ServeHTTP(w, r)
}

// view is what every template sees.
type view struct {
	Lang  string
	Page  string // the topic that it listens to
	Topic string // unless it is another
	Title Text
	Data  any
	parts func() map[string]Text
}

// T chooses between the two languages.
func (v view) T(en, zh string) string { return Text{en, zh}.In(v.Lang) }

// In returns a Text, or a card's api.Text, in the page's language.
func (v view) In(t interface{ In(lang string) string }) string { return t.In(v.Lang) }

// Part is what the page's stream sends first for a part.
func (v view) Part(id string) (template.HTML, error) {
	text, there := v.parts()[id]
	if !there {
		return "", fmt.Errorf("dash: the stream of page %s has no part %q", v.Page, id)
	}
	return template.HTML(text.In(v.Lang)), nil //nolint:gosec // drawn by a template of ours
}

// With is the view of something smaller.
func (v view) With(data any) view { v.Data = data; return v }

func parse(name string) *template.Template {
	return template.Must(template.New(name).Funcs(template.FuncMap{
		"list": func(items ...any) []any { return items },
	}).ParseFS(pageFiles, "pages/layout.html.tmpl", "pages/"+name+".html.tmpl"))
}

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, name string, title Text, data any) {
	s.write(w, r, http.StatusOK, name, view{Lang: language(r), Page: name, Title: title, Data: data})
}

func (s *Server) write(w http.ResponseWriter, _ *http.Request, status int, name string, v view) {
	v.parts = sync.OnceValue(func() map[string]Text { return s.hub.parts(cmp.Or(v.Topic, v.Page)) })
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

// sorry is a page that says why there is none.
func (s *Server) sorry(w http.ResponseWriter, r *http.Request, status int, why Text) {
	s.write(w, r, status, "problem", view{Lang: language(r), Title: Text{"This did not work", "没有成功"}, Data: why})
}

// part is an element of a page, in both languages.
type part struct {
	ID string `json:"id"`
	Text
}

// part sends the element that the page's template of that name draws.
func (s *Server) part(page, name string, data any) message {
	p := s.draw(page, name, name, data)
	m := say("part", p)
	m.part = &p
	return m
}

// draw draws a part by the named template of the page.
func (s *Server) draw(page, name, id string, data any) part {
	p := part{ID: id}
	for _, lang := range []string{"en", "zh"} {
		var text bytes.Buffer
		if err := s.pages[page].ExecuteTemplate(&text, name, view{Lang: lang, Page: page, Data: data}); err != nil {
			text.Reset()
			template.HTMLEscape(&text, []byte(err.Error()))
		}
		if lang == "en" {
			p.EN = text.String()
		} else {
			p.ZH = text.String()
		}
	}
	return p
}

// request is what a page asks for: its form, and who asks.
type request struct {
	*http.Request
	Who string
}

// refusal is an error that the page may show, with its status.
type refusal struct {
	status int
	Text
}

func (r refusal) Error() string { return r.EN }

func bad(en, zh string) error { return refusal{http.StatusBadRequest, Text{en, zh}} }

// guarded is for what needs the lab's token.
func (s *Server) guarded(do func(context.Context, request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		err := r.ParseForm()
		switch {
		case err != nil:
			err = bad("the form can't be read", "表单无法读取")
		case subtle.ConstantTimeCompare([]byte(r.Header.Get(api.TokenHeader)), []byte(s.Shop.Token)) != 1:
			err = refusal{http.StatusForbidden, Text{
				"This needs the lab's token: open the link that the lab printed.", "需要实验室的令牌：请打开实验室打印的链接。",
			}}
		default:
			err = do(r.Context(), request{r, caller(r)})
		}
		answer(w, err)
	}
}

// answer says how it went: nothing, or a problem in both languages.
func answer(w http.ResponseWriter, err error) {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	problem := refusal{http.StatusInternalServerError, Text{err.Error(), err.Error()}}
	var busy busyError
	switch {
	case errors.As(err, &busy):
		since := busy.job.Since.Format("15:04:05")
		problem = refusal{http.StatusConflict, Text{
			fmt.Sprintf("%s runs %s since %s. One at a time: two would disturb each other.", busy.job.Who, busy.job.What.EN, since),
			fmt.Sprintf("%s 从 %s 起正在运行 %s。一次只能运行一个，否则互相干扰。", busy.job.Who, since, busy.job.What.In("zh")),
		}}
	default:
		errors.As(err, &problem)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(problem.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(problem.status), "status": problem.status, "detail": problem.EN, "detail_zh": problem.ZH,
	})
}

// caller is who asks, as far as we can tell: nginx says for whom it asks.
func caller(r *http.Request) string {
	who, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		who = r.RemoteAddr
	}
	// Only from our own machine, where nginx is: a name is not taken from anybody.
	if ip := net.ParseIP(who); ip != nil && (ip.IsLoopback() || ip.IsPrivate()) {
		if forwarded := r.Header.Get("X-Forwarded-For"); net.ParseIP(forwarded) != nil {
			who = forwarded
		}
	}
	return who
}

// switchLanguage keeps the choice and goes back.
func (s *Server) switchLanguage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<10)
	lang, back := r.FormValue("lang"), r.FormValue("back")
	if lang != "en" && lang != "zh" {
		http.Error(w, "lang: en or zh", http.StatusBadRequest)
		return
	}
	if !ourPath(back) {
		back = "/"
	}
	http.SetCookie(w, &http.Cookie{Name: langCookie, Value: lang, Path: "/", MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode, HttpOnly: true}) //nolint:gosec // a language is no secret, and a lab speaks HTTP
	http.Redirect(w, r, back, http.StatusSeeOther)                                                                                                     //nolint:gosec // looked at above: a path of ours
}

// ourPath reports whether a browser that is sent there stays on this host. To a browser
// //elsewhere, /\elsewhere and, with the tab dropped, /<tab>/elsewhere are other hosts.
func ourPath(back string) bool {
	to, err := url.Parse(back) // refuses control characters
	return err == nil && to.Scheme == "" && to.Host == "" &&
		strings.HasPrefix(back, "/") && !strings.HasPrefix(back, "//") && !strings.Contains(back, `\`)
}
