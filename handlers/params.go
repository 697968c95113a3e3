package handlers

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

const (
	maxQty      = 100
	maxDuration = 60 * time.Second
	minLease    = 100 * time.Millisecond
	defaultWait = 10 * time.Second
	maxCount    = 1_000_000
	maxAlso     = 8         // further locks of one request
	maxID       = 1<<53 - 1 // the highest whole number that a browser keeps exactly
	maxName     = 64
	nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)

// short quotes the beginning of a client's text, so that a long text does not fill the answer.
func short(value string) string { return strconv.Quote(cut(value)) }

func cut(value string) string { return stock.Shorten(value, 40) }

// params reads parameters, and keeps the error of the first bad parameter.
type params struct {
	values url.Values
	err    error
}

var checkLockParams = []string{"strategy", "product", "qty", "hold", "outside", "wait", "pause", "lease", "fenced", "nested", "also"} //nolint:gochecknoglobals // constant

// newParams rejects unknown and repeated names: a misspelt "strategy" must not select the default.
func newParams(r *http.Request, known []string) *params {
	p := &params{}
	var err error
	if p.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		p.fail("query", err.Error(), api.Text{EN: "a valid query string", ZH: "有效的查询串"})
	}
	body, err := bodyParams(r)
	if err != nil {
		p.fail("body", err.Error(), api.Text{
			EN: `a form such as product=1, or one JSON object such as {"product":1}`,
			ZH: `表单，例如 product=1，或者一个 JSON 对象，例如 {"product":1}`,
		})
	}
	for name, values := range body {
		p.values[name] = append(p.values[name], values...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		switch values := p.values[name]; {
		case !slices.Contains(known, name):
			p.fail(name, values[0], api.Textf("left out, because it is unknown; the parameters are %s",
				"不写，因为没有这个参数；参数有 %s", strings.Join(known, ", ")))
		case len(values) > 1:
			p.fail(name, strings.Join(values, ", "), api.Text{EN: "given once", ZH: "只给一次"})
		}
	}
	return p
}

// rowParams reads the parameters of a route whose path has the id of a row, such as a coupon.
func rowParams(c *gin.Context, known ...string) (p *params, id int64) {
	p = newParams(c.Request, known)
	id = p.whole("id", c.Param("id"), 1, maxID)
	return p, id
}

func (p *params) fail(name, value string, allowed api.Text) {
	if p.err == nil {
		p.err = badParameter(name, value, allowed)
	}
}

func (p *params) text(name, otherwise string) string {
	if !p.values.Has(name) {
		return otherwise
	}
	return p.values.Get(name)
}

func (p *params) number(name string, otherwise, low, high int64) int64 {
	if !p.values.Has(name) {
		return otherwise
	}
	return p.whole(name, p.values.Get(name), low, high)
}

func (p *params) whole(name, text string, low, high int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		p.fail(name, text, api.Textf("a whole number from %d to %d", "%d 到 %d 的整数", low, high))
	}
	return n
}

func (p *params) duration(name string, otherwise, low time.Duration) time.Duration {
	return p.durationTo(name, otherwise, low, maxDuration)
}

func (p *params) durationTo(name string, otherwise, low, high time.Duration) time.Duration {
	if !p.values.Has(name) {
		return otherwise
	}
	text := p.values.Get(name)
	d, err := time.ParseDuration(text)
	if err != nil || d < low || d > high {
		p.fail(name, text, api.Textf("a duration from %v to %v, such as 500ms or 2s", "%v 到 %v 的时长，例如 500ms 或 2s", low, high))
	}
	return d
}

// lease reads the lease of one request. It returns 0 if the lock's default lease applies.
func (p *params) lease() time.Duration { return p.duration("lease", 0, minLease) }

func oneOf(ids []string) api.Text {
	return api.Textf("one of %s", "其中之一：%s", strings.Join(ids, ", "))
}

func choice[T any](p *params, name, otherwise string, of map[string]T) (id string, chosen T) {
	id = p.text(name, otherwise)
	chosen, ok := of[id]
	if !ok {
		p.fail(name, id, oneOf(slices.Sorted(maps.Keys(of))))
	}
	return id, chosen
}

func (p *params) boolean(name string) bool {
	text := p.text(name, "false")
	if text != "true" && text != "false" {
		p.fail(name, text, api.Text{EN: "true or false", ZH: "true 或 false"})
	}
	return text == "true"
}

// words reads up to most words, separated by commas.
func (p *params) words(name string, most int) (words []string) {
	text := p.text(name, "")
	if text == "" && !p.values.Has(name) {
		return nil
	}
	if words = strings.Split(text, ","); len(words) > most {
		p.fail(name, text, api.Textf("up to %d names, separated by commas", "至多 %d 个名字，用逗号分隔", most))
	}
	for _, word := range words {
		p.checkWord(name, word)
	}
	return words
}

// word reads a text that is safe in all backends' keys. It is mandatory if otherwise is empty.
func (p *params) word(name, otherwise string) string {
	text := p.text(name, otherwise)
	p.checkWord(name, text)
	return text
}

func (p *params) checkWord(name, text string) {
	strange := strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(nameLetters, r) })
	if strange || text == "" || len(text) > maxName || text == "." || text == ".." {
		p.fail(name, text, api.Textf("1 to %d letters, digits, dots, _ or -, and not only . or ..", "1 到 %d 个字母、数字、点、_ 或 -，不能只是 . 或 ..", maxName))
	}
}

// header reads a word from a mandatory header. The word may be in quotes.
func (p *params) header(r *http.Request, name string) string {
	text := strings.Join(r.Header.Values(name), ", ")
	if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	p.checkWord(name, text)
	return text
}

func (p *params) needed(name string, low, high int64) int64 {
	if p.values.Has(name) {
		return p.number(name, 0, low, high)
	}
	p.fail(name, "", api.Textf("given: a whole number from %d to %d", "必填：%d 到 %d 的整数", low, high))
	return 0
}

// order reads a sale's parameters, and rejects options that the strategy does not support.
func (s *Service) order(r *http.Request) (locks.Strategy, stock.Order, error) {
	p := newParams(r, checkLockParams)
	o := stock.Order{
		Product: p.number("product", 1, 1, maxID),
		Qty:     int(p.number("qty", 1, 1, maxQty)),
		Work:    p.duration("hold", 0, 0),
		Outside: p.duration("outside", 0, 0),
		Wait:    p.duration("wait", defaultWait, 0),
		Pause:   p.duration("pause", 0, 0),
		Lease:   p.lease(),
		Fenced:  p.boolean("fenced"),
		Nested:  p.boolean("nested"),
		Also:    p.words("also", maxAlso),
		Owner:   s.newOwner(),
	}
	strategy := s.strategy(p, "none")
	if strategy != nil {
		s.checkOptions(p, strategy.Card())
	}
	return strategy, o, p.err
}

// checkOptions rejects the options of a request that the strategy with this card does not support.
func (s *Service) checkOptions(p *params, card api.Card) {
	for _, option := range []struct {
		name      string
		supported func(api.Card) bool
		lacks     api.Text
	}{
		{"fenced", func(c api.Card) bool { return c.Fenced }, api.Text{EN: "has no fencing tokens", ZH: "没有栅栏令牌"}},
		{"nested", func(c api.Card) bool { return c.Locker }, api.Text{EN: "is not a lock", ZH: "不是锁"}},
		{"also", func(c api.Card) bool { return c.SeveralLocks }, api.Text{EN: "has only one lock", ZH: "只有一把锁"}},
		{"pause", func(c api.Card) bool { return c.BrokenBy(api.Polling) }, api.Text{EN: "does not poll", ZH: "不轮询"}},
		{"lease", func(c api.Card) bool { return c.LeasePerRequest }, api.Text{EN: "has no lease per request", ZH: "不支持按请求设置租期"}},
	} {
		if value := p.text(option.name, "false"); value != "false" && !option.supported(card) {
			p.fail(option.name, value, api.Textf(
				"left out: %[1]s %[2]s; strategies that support it: %[4]s", "不写：%[1]s %[3]s；支持的策略有 %[4]s",
				card.ID, option.lacks.EN, option.lacks.ZH, s.having(option.supported)))
		}
	}
}

func (s *Service) strategy(p *params, otherwise string) locks.Strategy {
	id := p.text("strategy", otherwise)
	strategy, ok := s.byID[id]
	if !ok {
		p.fail("strategy", id, oneOf(s.ids))
		return nil
	}
	return strategy
}

func (s *Service) having(claim func(api.Card) bool) string {
	var ids []string
	for _, card := range s.cards {
		if claim(card) {
			ids = append(ids, card.ID)
		}
	}
	return strings.Join(ids, ", ")
}
