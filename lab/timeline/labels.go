package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// label names one step, or several steps that are too close for separate labels.
type label struct {
	X     string
	AtEnd bool   // X is its right end, because there is no room to the right
	Begin string // then where it would begin otherwise
	Words []word
	at    float64
}

type word struct {
	Text  string
	Alarm bool
}

// saying is a word and its time.
type saying struct {
	at time.Duration
	word
}

// labels returns the labels above the bar. Steps that are too close share a label, which begins
// at the first of them.
func (t Timeline) labels(task *task) []label {
	var labels []label
	room := 0.0 // where the next label may begin
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
		if l.at+width(l.text()) > 100 { // the last label must stay inside the picture
			labels[i].X, labels[i].AtEnd, labels[i].Begin = "100%", true, percent(l.at)
		}
	}
	return labels
}

// width returns the width of the words: a Chinese character has that of two letters.
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

// sayings returns the steps that are not the end of a bar, new fencing tokens, and overlaps.
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
