package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// label is one or more steps in words: as many as come too close for a label each.
type label struct {
	X     string
	AtEnd bool   // X is its end, for lack of room
	Begin string // then where it would begin, if there were room
	Words []word
	at    float64
}

type word struct {
	Text  string
	Alarm bool
}

// saying is a word and its moment.
type saying struct {
	at time.Duration
	word
}

// labels puts the steps into words above the bar. Those that would stand in each other's
// way share a label, which begins at the first of them.
func (t Timeline) labels(task *task) []label {
	var labels []label
	room := 0.0 // where the next one may begin
	for _, s := range t.sayings(task) {
		x := t.x(s.at)
		if n := len(labels); n > 0 && x < room {
			labels[n-1].Words = append(labels[n-1].Words, s.word)
		} else {
			labels = append(labels, label{Words: []word{s.word}, at: x})
			room = x
		}
		room += width(s.Text) + 3*letter
	}
	for i, l := range labels {
		labels[i].X = percent(l.at)
		if l.at+width(l.text()) > 100 { // the last one must not leave the picture
			labels[i].X, labels[i].AtEnd, labels[i].Begin = "100%", true, percent(l.at)
		}
	}
	return labels
}

// width is how much room the words take: a Chinese character that of two letters.
func width(words string) float64 {
	letters := 0
	for _, r := range words {
		if letters++; unicode.Is(unicode.Han, r) {
			letters++
		}
	}
	return float64(letters) * letter
}

func (l label) text() string {
	words := make([]string, len(l.Words))
	for i, w := range l.Words {
		words[i] = w.Text
	}
	return strings.Join(words, " · ")
}

// sayings are the steps that are no bar's end, new fences, and who else held the lock.
func (t Timeline) sayings(task *task) []saying {
	var all []saying
	fence := int64(0)
	for _, e := range task.events {
		if f := fenceOf(e); f > 0 && f != fence {
			fence = f
			all = append(all, saying{e.At, word{Text: t.say("fence %d", "令牌 %d", f)}})
		}
		if e.Step != "asked" && e.Step != "granted" && e.Step != "released" {
			all = append(all, saying{e.At, word{Text: t.word(e.Step)}})
		}
	}
	for _, o := range t.overlaps {
		switch task {
		case o.first:
			all = append(all, saying{o.from, word{t.say("beside %s", "与 %s 同时", o.second.name), true}})
		case o.second:
			all = append(all, saying{o.from, word{t.say("beside %s", "与 %s 同时", o.first.name), true}})
		}
	}
	slices.SortStableFunc(all, func(a, b saying) int { return cmp.Compare(a.at, b.at) })
	return all
}
