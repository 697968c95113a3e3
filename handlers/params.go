package handlers

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Limits of a request. A class waits a minute at most.
const (
	maxQty      = 100
	maxDuration = 60 * time.Second
	minLease    = 100 * time.Millisecond
	defaultWait = 10 * time.Second
	maxCount    = 1_000_000
	maxID       = 1<<53 - 1 // fits into a browser's number
	maxName     = 64
	nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

// paramError names the parameter and what it may be.
type paramError struct{ name, value, allowed string }

func (e *paramError) Error() string {
	return fmt.Sprintf("%s=%s: must be %s", e.name, short(e.value), e.allowed)
}

// short keeps what a stranger sends from filling a projector, or the answer.
func short(value string) string { return strconv.Quote(cut(value)) }

func cut(value string) string {
	if len(value) > 40 {
		value = strings.ToValidUTF8(value[:40], "") + "…"
	}
	return value
}

// params reads parameters and remembers the first that was wrong.
type params struct {
	values url.Values
	err    *paramError
}

var checkLockParams = []string{"strategy", "product", "qty", "hold", "wait", "lease", "fenced", "nested"} //nolint:gochecknoglobals // constant

// newParams takes the query and the body. A name that is not known, or stands twice,
// is refused: with a typing error ignored, a class would measure "none".
func newParams(r *http.Request, known []string) *params {
	p := &params{}
	var err error
	if p.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		p.fail("query", err.Error(), "a valid query string")
	}
	body, err := bodyParams(r)
	if err != nil {
		p.fail("body", err.Error(), `a form such as product=1, or one JSON object such as {"product":1}`)
	}
	for name, values := range body {
		p.values[name] = append(p.values[name], values...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		switch values := p.values[name]; {
		case !slices.Contains(known, name):
			p.fail(name, values[0], "left out; the parameters are "+strings.Join(known, ", "))
		case len(values) > 1:
			p.fail(name, strings.Join(values, ", "), "given once")
		}
	}
	return p
}

func (p *params) fail(name, value, allowed string) {
	if p.err == nil {
		p.err = &paramError{cut(name), cut(value), allowed}
	}
}

func (p *params) text(name, otherwise string) string {
	if !p.values.Has(name) {
		return otherwise
	}
	return p.values.Get(name)
}

func (p *params) number(name string, otherwise, low, high int64) int64 {
	return p.whole(name, p.text(name, strconv.FormatInt(otherwise, 10)), low, high)
}

func (p *params) whole(name, text string, low, high int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		p.fail(name, text, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return n
}

func (p *params) duration(name string, otherwise, low time.Duration) time.Duration {
	text := p.text(name, otherwise.String())
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > maxDuration {
		p.fail(name, text, fmt.Sprintf("a duration from %v to %v, such as 500ms or 2s", low, maxDuration))
	}
	return d
}

// choice reads the name of one of those that there are.
func choice[T any](p *params, name, otherwise string, of map[string]T) (id string, chosen T) {
	id = p.text(name, otherwise)
	chosen, ok := of[id]
	if !ok {
		p.fail(name, id, "one of "+strings.Join(slices.Sorted(maps.Keys(of)), ", "))
	}
	return id, chosen
}

func (p *params) boolean(name string) bool {
	text := p.text(name, "false")
	if text != "true" && text != "false" {
		p.fail(name, text, "true or false")
	}
	return text == "true"
}

// word reads a name that is safe in any backend's key. Without otherwise the
// request must have it.
func (p *params) word(name, otherwise string) string {
	text := p.text(name, otherwise)
	strange := strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(nameLetters, r) })
	if strange || text == "" || len(text) > maxName || text == "." || text == ".." {
		p.fail(name, text, fmt.Sprintf("1 to %d letters, digits, dots, _ or -, and not only . or ..", maxName))
	}
	return text
}

// header reads a word that must stand in the request's header, once, in quotes or without.
func (p *params) header(r *http.Request, name string) string {
	text := strings.Join(r.Header.Values(name), ", ")
	if unquoted, ok := strings.CutPrefix(text, `"`); ok {
		if unquoted, ok = strings.CutSuffix(unquoted, `"`); ok {
			text = unquoted
		}
	}
	given := params{values: url.Values{name: {text}}}
	word := given.word(name, "")
	if p.err == nil {
		p.err = given.err
	}
	return word
}

// needed is a number without which the request means nothing.
func (p *params) needed(name string, low, high int64) int64 {
	if p.values.Has(name) {
		return p.number(name, 0, low, high)
	}
	p.fail(name, "", fmt.Sprintf("given: a whole number from %d to %d", low, high))
	return 0
}

// order reads a deduction from the request.
func (s *Service) order(r *http.Request) (locks.Strategy, stock.Order, *paramError) {
	p := newParams(r, checkLockParams)
	if p.err != nil {
		return nil, stock.Order{}, p.err
	}
	o := stock.Order{
		Product: p.number("product", 1, 1, maxID),
		Qty:     int(p.number("qty", 1, 1, maxQty)),
		Work:    p.duration("hold", 0, 0),
		Wait:    p.duration("wait", defaultWait, 0),
		Fenced:  p.boolean("fenced"),
		Nested:  p.boolean("nested"),
		Owner:   s.newOwner(),
	}
	if p.values.Has("lease") {
		o.Lease = p.duration("lease", 0, minLease)
	}
	strategy := s.strategy(p, "none")
	if strategy == nil {
		return nil, o, p.err
	}
	// What a strategy can't do, it must not seem to do.
	card := strategy.Card()
	id := card.ID
	if o.Fenced && !card.Fenced {
		p.fail("fenced", "true", "left out for "+id+", which has no fence; these have: "+s.having(func(c api.Card) bool { return c.Fenced }))
	}
	if o.Nested && !card.Locker {
		p.fail("nested", "true", "left out for "+id+", which is no lock; these are: "+s.having(func(c api.Card) bool { return c.Locker }))
	}
	if o.Lease > 0 && !card.LeasePerRequest {
		p.fail("lease", p.text("lease", ""), "left out for "+id+"; a lease per request have: "+s.having(func(c api.Card) bool { return c.LeasePerRequest }))
	}
	return strategy, o, p.err
}

// strategy reads the parameter of that name; nil where there is none such.
func (s *Service) strategy(p *params, otherwise string) locks.Strategy {
	id := p.text("strategy", otherwise)
	strategy, ok := s.byID[id]
	if !ok {
		p.fail("strategy", id, "one of "+strings.Join(s.ids, ", "))
		return nil
	}
	return strategy
}

// having lists the strategies whose card says so.
func (s *Service) having(claim func(api.Card) bool) string {
	var ids []string
	for _, card := range s.cards {
		if claim(card) {
			ids = append(ids, card.ID)
		}
	}
	return strings.Join(ids, ", ")
}
