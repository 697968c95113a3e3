package adapter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"oversell/api"
	"oversell/stock"
)

// Version is the version of the protocol, which a program names in its hello.
const Version = 1

// maxLine limits the length of a line in bytes, so that a program cannot fill the memory.
const maxLine = 64 << 10

// Hello is the first line of a program. The program sends it before it connects to a server.
type Hello struct {
	Hello    int    `json:"hello"` // Version
	Library  string `json:"library"`
	Version  string `json:"version"`
	Language string `json:"language"`
	// Document is the address of the text that the program follows. It may be empty.
	Document string `json:"document,omitempty"`
	// Backends are the servers of the lock. Experiments inject faults into these servers only.
	Backends     []string     `json:"backends"`
	Capabilities Capabilities `json:"capabilities"`
	// Protects lists the hazards that the lock survives, and Breaks the hazards that break it.
	Protects []api.Hazard `json:"protects,omitempty"`
	Breaks   []Break      `json:"breaks,omitempty"`
}

// Capabilities says what a lock can do. The contract checks each of them, and also that the lock
// does not have those that it does not claim.
type Capabilities struct {
	Lease           bool `json:"lease,omitempty"`             // a lock expires
	LeasePerRequest bool `json:"lease_per_request,omitempty"` // each acquire may choose its lease
	Renewal         bool `json:"renewal,omitempty"`           // the lease is renewed until the release
	Reentry         bool `json:"reentry,omitempty"`           // an owner may acquire its lock again
	Fairness        bool `json:"fairness,omitempty"`          // waiters get the lock in order of arrival
	LossNotice      bool `json:"loss_notice,omitempty"`       // sends lost, and answers verify
	Fence           bool `json:"fence,omitempty"`             // each grant has a higher number
	AdvanceFence    bool `json:"advance_fence,omitempty"`     // answers advance
	// ReleaseResult is false if the library's release has no result: then every release is answered with
	// released. Nil means true.
	ReleaseResult *bool `json:"release_result,omitempty"`
	// Poll is the longest pause between two tries of a waiter, in milliseconds. 0 means at most half a second.
	Poll int64 `json:"poll,omitempty"`
}

// Break is a hazard that breaks the lock. At is the step at which it does, if that matters.
type Break struct {
	Hazard api.Hazard `json:"hazard"`
	At     api.Step   `json:"at,omitempty"`
}

// These are the values of Request.Do.
const (
	doAcquire  = "acquire"
	doRelease  = "release"
	doVerify   = "verify"
	doAdvance  = "advance"
	doClear    = "clear"
	doCancel   = "cancel"   // ends the wait of an acquire, which is then answered
	doContinue = "continue" // ends the pause at a step
)

// Request is a line to the program. Of is the ID of the acquire that it concerns. Cancel and
// continue have no ID and no answer.
type Request struct {
	ID      int64  `json:"id,omitempty"`
	Do      string `json:"do"`
	Of      int64  `json:"of,omitempty"`
	Key     string `json:"key,omitempty"`
	Owner   string `json:"owner,omitempty"`
	WaitMS  int64  `json:"wait_ms,omitempty"`
	LeaseMS int64  `json:"lease_ms,omitempty"`
	NoRenew bool   `json:"no_renew,omitempty"`
	Fenced  bool   `json:"fenced,omitempty"`
	Floor   int64  `json:"floor,omitempty"`
}

// These are the values of Answer.Answer.
const (
	granted     = "granted"
	notAcquired = "not_acquired"
	released    = "released"
	held        = "held"
	notHeld     = "not_held"
	advanced    = "advanced"
	done        = "done"
	failed      = "error"
	queued      = "queued" // the acquire waits in the backend's queue
	lost        = "lost"   // the holder lost the lock
	step        = "step"   // the request waits at a step until continue
)

// Answer is a line from the program. All lines except queued, lost and step are final: they end the
// request with this ID. The ID of lost is that of the acquire.
type Answer struct {
	ID      int64    `json:"id"`
	Answer  string   `json:"answer"`
	Fence   int64    `json:"fence,omitempty"`
	Why     string   `json:"why,omitempty"`
	Backend string   `json:"backend,omitempty"`
	Step    api.Step `json:"step,omitempty"`
}

func (a Answer) final() bool { return a.Answer != queued && a.Answer != lost && a.Answer != step }

// answers lists the possible answers of each request.
func answers(do string) []string {
	return map[string][]string{
		doAcquire: {granted, notAcquired, queued, lost, step, failed},
		doRelease: {released, notHeld, step, failed},
		doVerify:  {held, notHeld, failed},
		doAdvance: {advanced, notHeld, failed},
		doClear:   {done, failed},
	}[do]
}

// decode reads one JSON object. Unknown fields are an error, because a misspelt field would
// otherwise be ignored without a word.
func decode(line []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(line))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", short(line), withoutPrefix(err))
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more than one JSON object in a line", short(line))
	}
	return nil
}

// printable returns text without the characters that act on a terminal: a lock on trial could write over its verdict.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case r == '\n', r == '\t', unicode.IsGraphic(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func withoutPrefix(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON object is not complete")
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		kinds := map[string]string{ // of JSON, and of Go
			"string": "a text", "bool": "true or false", "array": "a list", "slice": "a list", "object": "an object", "struct": "an object",
		}
		return fmt.Errorf("the field %s has %s, and must have %s", cmp.Or(wrong.Field, "of the line"),
			cmp.Or(kinds[wrong.Value], "the "+wrong.Value), cmp.Or(kinds[wrong.Type.Kind().String()], "a whole number"))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func short(line []byte) string {
	return strconv.Quote(stock.Shorten(strings.ToValidUTF8(string(line), "?"), 80))
}

func decodeHello(line []byte) (Hello, error) {
	var h Hello
	if err := decode(line, &h); err != nil {
		return h, err
	}
	for _, text := range []*string{&h.Library, &h.Version, &h.Language, &h.Document} {
		*text = strings.Join(strings.Fields(printable(*text)), " ")
	}
	return h, h.check()
}

// backends lists the backends that a hello may name.
func backends() []string {
	return []string{"redis", "redlock", "zookeeper", "etcd", "mysql", "postgres"}
}

func (h Hello) check() error {
	c := h.Capabilities
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{h.Hello != Version, fmt.Sprintf("the hello has version %d of the protocol, and must have \"hello\":%d", h.Hello, Version)},
		{h.Library == "", "the hello has no library"},
		{c.Poll < 0 || c.Poll > 60_000, "the hello has a poll that is not 0 to 60000 milliseconds"},
		{c.LeasePerRequest && !c.Lease, "the hello claims lease_per_request without lease"},
		{c.Renewal && !c.Lease, "the hello claims renewal without lease"},
		{c.AdvanceFence && !c.Fence, "the hello claims advance_fence without fence"},
		{len(h.Backends) == 0, "the hello has no backends: name the servers of the lock, some of " + strings.Join(backends(), ", ")},
	} {
		if rule.broken {
			return errors.New(rule.message)
		}
	}
	for _, b := range h.Backends {
		if !slices.Contains(backends(), b) {
			return fmt.Errorf("the hello has the backend %q, and must have some of %s", b, strings.Join(backends(), ", "))
		}
	}
	for _, b := range h.Breaks {
		if slices.Contains(h.Protects, b.Hazard) {
			return fmt.Errorf("the hello has the hazard %q in protects and in breaks", b.Hazard)
		}
	}
	return nil
}

// check returns an error unless the answer is possible for a request with this do.
func (a Answer) check(do string) error {
	switch {
	case !slices.Contains(answers(do), a.Answer):
		return fmt.Errorf("the answer %q to %s %d; possible are %s", a.Answer, do, a.ID, strings.Join(answers(do), ", "))
	case a.Answer == failed && a.Why == "":
		return fmt.Errorf("the answer error to %s %d has no why", do, a.ID)
	case a.Answer == step && a.Step == "":
		return fmt.Errorf("the answer step to %s %d has no step", do, a.ID)
	case a.Answer == advanced && a.Fence <= 0:
		return fmt.Errorf("the answer advanced to %s %d has no fence", do, a.ID)
	}
	return nil
}

// Card returns the card of the lock: its description with its claims. A lock claims that it
// excludes two requests (race, replica-race), unless its hello says otherwise.
func (h Hello) Card() api.Card {
	c, name := h.Capabilities, strings.TrimSpace(h.Library+" "+h.Version)
	card := api.Card{
		ID: ID, Family: ID, Source: name, Locker: true, Scope: api.ScopeShared, Safe: true,
		Title: api.Text{EN: name, ZH: name},
		Summary: api.Textf("A lock that another program provides: %s, in %s.", "由另一个程序提供的锁：%s，语言 %s。",
			name, h.Language),
		Backends: append([]string{"mysql"}, slices.DeleteFunc(slices.Clone(h.Backends), func(b string) bool { return b == "mysql" })...),
		Lease:    c.Lease, LeasePerRequest: c.LeasePerRequest, Renews: c.Renewal, Unchecked: c.Lease && !c.LossNotice,
		Reentrant: c.Reentry, Fair: c.Fairness, Fenced: c.Fence, Protects: slices.Clone(h.Protects),
		SilentRelease: c.ReleaseResult != nil && !*c.ReleaseResult, PollMS: c.Poll,
	}
	for _, b := range h.Breaks {
		card.Breaks = append(card.Breaks, api.Break{Hazard: b.Hazard, At: b.At, Why: api.Text{
			EN: "The program of the lock says so.", ZH: "锁程序自己这样声明。",
		}})
	}
	for _, hazard := range []api.Hazard{api.Race, api.ReplicaRace} {
		if card.BrokenBy(hazard) {
			card.Safe = false
		} else if !slices.Contains(card.Protects, hazard) {
			card.Protects = append(card.Protects, hazard)
		}
	}
	return card
}

// HelloOf returns the hello of a Go Locker with this card.
func HelloOf(card api.Card, version string, advances bool) Hello {
	h := Hello{
		Hello: Version, Library: "oversell " + card.ID, Version: version, Language: "Go",
		Backends: slices.DeleteFunc(slices.Clone(card.Backends), func(b string) bool { return b == "mysql" && len(card.Backends) > 1 }),
		Protects: card.Protects,
		Capabilities: Capabilities{
			Lease: card.Lease, LeasePerRequest: card.LeasePerRequest, Renewal: card.Renews, Reentry: card.Reentrant,
			Fairness: card.Fair, LossNotice: card.Lease && !card.Unchecked, Fence: card.Fenced, AdvanceFence: card.Fenced && advances,
		},
	}
	for _, b := range card.Breaks {
		h.Breaks = append(h.Breaks, Break{Hazard: b.Hazard, At: b.At})
	}
	return h
}
