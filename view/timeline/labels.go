package timeline

import (
	"cmp"
	"slices"
	"time"
	"unicode"
)

// label names one step, or several steps that are too close for separate labels.
type label struct {
	X     string
	AtEnd bool   // X is its right end, because there is no room to the right
	Begin string // with AtEnd, the X at which the label would begin otherwise
	Words []word
	at    float64
	width float64 // with a separator after the last word
}

type word struct {
	Text  string
	Alarm bool
}

type saying struct {
	at time.Duration
	word
}

func (t Timeline) labels(task *task) []label {
	var labels []label
	for _, s := range t.sayings(task) {
		n := len(labels)
		if x := t.x(s.at); n == 0 || x >= labels[n-1].at+labels[n-1].width {
			labels = append(labels, label{X: percent(x), at: x})
			n++
		}
		l := &labels[n-1]
		l.Words, l.width = append(l.Words, s.word), l.width+width(s.Text)+3*letter
	}
	for i, l := range labels {
		if l.at+l.width-3*letter > 100 { // the last label must stay inside the picture
			labels[i].X, labels[i].AtEnd, labels[i].Begin = "100%", true, percent(l.at)
		}
	}
	return labels
}

// width returns the width of the words. A Chinese character is as wide as two letters.
func width(words string) float64 {
	letters := 0
	for _, r := range words {
		if letters++; unicode.Is(unicode.Han, r) {
			letters++
		}
	}
	return float64(letters) * letter
}

// sayings returns the texts for a request: its steps that are not the end of a bar, its new fencing
// tokens, and its overlaps.
func (t Timeline) sayings(of *task) []saying {
	var all []saying
	fence := int64(0)
	for _, e := range of.events {
		if f := fenceOf(e); f > 0 && f != fence {
			fence = f
			all = append(all, saying{e.At, word{Text: t.say("fence %d", "栅栏号 %d", f)}})
		}
		if e.Step != "asked" && e.Step != "granted" && e.Step != "released" {
			all = append(all, saying{e.At, word{Text: t.word(e.Step)}})
		}
	}
	for _, h := range of.holds {
		if h.lapses() {
			words := "lease ends"
			if h.lost {
				words = "lock lost"
			}
			all = append(all, saying{h.lapse, word{t.word(words), true}})
		}
	}
	for _, o := range t.overlaps {
		other := map[*task]*task{o.first: o.second, o.second: o.first}[of]
		if other != nil {
			all = append(all, saying{o.from, word{t.say("overlaps %s", "与 %s 重叠", other.name), true}})
		}
	}
	slices.SortStableFunc(all, func(a, b saying) int { return cmp.Compare(a.at, b.at) })
	return all
}
