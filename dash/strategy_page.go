package dash

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"oversell/lab/report"
)

// strategyPages are the pages of the strategies: its card in words, its code, its figures,
// and what breaks it. They change only with what was run.
type strategyPages struct{ s *Server }

func newStrategyPages(s *Server) *strategyPages {
	// Nothing is sent: a page listens to learn whether the lab is there.
	s.hub.open("learn", func() []message { return nil })
	return &strategyPages{s}
}

func (l *strategyPages) route() {
	l.s.routes.HandleFunc("GET /dash/learn", func(w http.ResponseWriter, r *http.Request) {
		groups, err := l.s.catalogue.groups(r.Context())
		if err != nil {
			l.s.sorry(w, r, http.StatusServiceUnavailable, unreachable(err))
			return
		}
		l.s.show(w, r, "learn", Text{"Learn", "学习"}, groups)
	})
	l.s.routes.HandleFunc("GET /dash/learn/{id}", l.page)
}

// strategyView is what a strategy's page shows.
type strategyView struct {
	card
	Able     bool
	Claims   []claim
	Listings []listing
	Ours     *report.Result // the newest; nil: not run yet
	Before   string         // on the catalogue; empty for the first
	After    string         // empty for the last
}

// claim is what the card says about one hazard.
type claim struct {
	resultKey
	hazard
	Breaks bool
	Why    Text
	Run    *storedResult // what our experiment showed; nil: not run yet
}

// listing is a file, line by line.
type listing struct {
	Name  string
	Lines []string
}

func (l *strategyPages) page(w http.ResponseWriter, r *http.Request) {
	x, err := l.of(r.Context(), r.PathValue("id"))
	var refused refusal
	switch {
	case errors.As(err, &refused):
		l.s.sorry(w, r, refused.status, refused.Text)
	case err != nil:
		l.s.sorry(w, r, http.StatusServiceUnavailable, unreachable(err))
	default:
		l.s.write(w, r, http.StatusOK, "lesson", view{Lang: language(r), Page: "learn", Title: Text{x.ID, x.ID}, Data: x})
	}
}

func (l *strategyPages) of(ctx context.Context, id string) (x strategyView, err error) {
	if x.card, err = l.s.catalogue.one(ctx, id); err != nil {
		return x, err
	}
	all, err := l.s.catalogue.all(ctx)
	if err != nil {
		return x, err
	}
	at := slices.IndexFunc(all, func(c card) bool { return c.ID == id })
	if at > 0 {
		x.Before = all[at-1].ID
	}
	if at+1 < len(all) {
		x.After = all[at+1].ID
	}
	for _, file := range x.Code {
		x.Listings = append(x.Listings, listing{file.Name, strings.Split(strings.TrimSuffix(file.Text, "\n"), "\n")})
	}
	x.Able = l.s.breaks.able()
	for _, b := range x.Breaks {
		x.add(claim{Breaks: true, Why: Text(b.Why), resultKey: resultKey{Hazard: string(b.Hazard), Strategy: id}})
	}
	for _, h := range x.Protects {
		x.add(claim{resultKey: resultKey{Hazard: string(h), Strategy: id}})
	}
	l.s.hub.send("break", func() []message {
		for i, c := range x.Claims {
			x.Claims[i].Run = l.s.breaks.runs[c.resultKey]
		}
		return nil
	})
	l.s.hub.send("run", func() []message {
		for _, k := range l.s.runs.results {
			if k.Result.Strategy == id {
				x.Ours = &k.Result
			}
		}
		return nil
	})
	return x, nil
}

func (x *strategyView) add(c claim) {
	c.hazard, _ = hazardOf(c.Hazard)
	x.Claims = append(x.Claims, c)
}
