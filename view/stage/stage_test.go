package stage_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"oversell/api"
	"oversell/view/stage"
)

// frozen is the moment of a pause: A's replica is frozen, and B has the lock.
func frozen() stage.Stage {
	return stage.Stage{
		Lock: "Redis", Clients: []stage.Box{{Name: "A"}, {Name: "B"}},
		Replicas: []stage.Box{{Name: "replica-1", State: stage.Frozen, Note: api.Text{EN: "lease over", ZH: "租期已过"}}, {Name: "replica-2", State: stage.Holding}, {Name: "replica-3", State: stage.Dead}},
		Holder:   "replica-2", Queue: []string{"C", "D", "E", "F", "<G>"}, Row: "9",
		Alarm: api.Text{EN: "2 sold, 1 taken from stock", ZH: "卖出 2，库存只减少 1"},
	}
}

func TestSentence(t *testing.T) {
	for want, got := range map[string]string{
		"The lock is in Redis. replica-1: frozen, lease over. replica-2: holding the lock. replica-3: dead. replica-2 holds the lock. Waiting: C, D, E, F, <G>. The row: 9. 2 sold, 1 taken from stock": frozen().Sentence().EN,
		"锁在 Redis 里。replica-1：已冻结，租期已过。replica-2：持有锁。replica-3：已终止。replica-2 持有锁。等待：C, D, E, F, <G>。数据行：9。卖出 2，库存只减少 1":                                                                                 frozen().Sentence().ZH,
		"There is no lock. The row: 10.":                                   stage.Stage{Row: "10"}.Sentence().EN,
		"Each replica has a lock of its own. The row: 10.":                 stage.Stage{Row: "10", Lock: stage.EachServer}.Sentence().EN,
		"The row itself keeps other sales out. A: A read 10. The row: 10.": stage.Stage{Row: "10", Lock: stage.TheRow, Clients: []stage.Box{{Name: "A", Note: api.Text{EN: "A read 10"}}}}.Sentence().EN,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSVG checks that a picture is well-formed, shows each part in both languages, and escapes names.
func TestSVG(t *testing.T) {
	for lang, want := range map[string][]string{"en": {"waiting:", "C, D, E +2", "frozen, lease over", "✗ replica-3"}, "zh": {"等待：", "已冻结，租期已过", "卖出 2"}} {
		svg := frozen().SVG("x", lang)
		for _, part := range append(want, `width="176"`, ">9<", "padlock held", "x-frost", "&lt;G&gt;") {
			if !strings.Contains(string(svg), part) {
				t.Errorf("%s: no %q in %s", lang, part, svg)
			}
		}
		for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPlaceOf(t *testing.T) {
	for want, c := range map[stage.Place]api.Card{
		stage.Nowhere:    {Scope: api.ScopeNone, Backends: []string{"mysql"}},
		stage.EachServer: {Scope: api.ScopeProcess, Locker: true, Backends: []string{"mysql"}},
		stage.TheRow:     {Scope: api.ScopeShared, Backends: []string{"mysql"}},
		"MySQL":          {Scope: api.ScopeShared, Locker: true, Backends: []string{"mysql"}},
		"5 × Redis":      {Scope: api.ScopeShared, Locker: true, Backends: []string{"mysql", "redlock"}},
		"ZooKeeper":      {Scope: api.ScopeNone, Locker: true, Backends: []string{"mysql", "zookeeper"}},
	} {
		if got := stage.PlaceOf(c); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
