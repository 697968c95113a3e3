package dash

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"time"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/view/stage"
	"oversell/view/terminal"
)

// stage draws the running strategy, for all who look at it now or later. The hub's mutex must be locked.
func (r *runs) stage() hub.Message {
	r.drawn = time.Now()
	picture := r.picture()
	if n := len(r.live.Series); n > 0 {
		r.live.Series[n-1].Stage = picture
	}
	return hub.NewMessage("stage", picture)
}

// picture draws the stage. The hub's mutex must be locked.
func (r *runs) picture() api.Text {
	now := r.moment()
	return inBoth(func(lang string) (template.HTML, error) { return now.SVG("stage", lang) })
}

// moment returns what the stage shows: the newest point of the run, or the system before the first run.
func (r *runs) moment() stage.Stage {
	l := r.live
	s := stage.Stage{Clients: []stage.Box{{Name: terminal.Number(max(1, cmp.Or(l.clients, 100))), Note: bilingual("clients", "个客户端")}}, Row: terminal.Number(cmp.Or(l.Stock, 5000))}
	var now point
	if len(l.Series) > 0 {
		of := l.Series[len(l.Series)-1]
		if len(of.Points) > 0 {
			now = of.Points[len(of.Points)-1]
		}
		if c, err := findCard(r.s.catalogue.known(), of.Strategy, 0); err == nil {
			card := r.s.catalogue.known()[c]
			s.Lock, s.Server = stage.PlaceOf(card.Card.Card), map[string]string{"redis": "Redis"}[card.Stock]
		}
	}
	for _, name := range r.replicas(now) {
		b := stage.Box{Name: name}
		if n, sent := now.Replicas[name]; sent {
			b.Note = api.Textf("%s requests", "%s 个请求", terminal.Number(n))
		}
		s.Replicas = append(s.Replicas, b)
	}
	if now.Owner != nil {
		s.Holder = now.Owner.Replica
	}
	if c := now.Count; c != nil {
		s.Row, s.Of = terminal.Number(c.Left), terminal.Number(l.Stock)
		if lost := c.Left - l.Stock + c.Sold; lost > 0 {
			s.Alarm = api.Textf("%s sold, %s taken from stock", "卖出 %s，库存只减少 %s", terminal.Number(c.Sold), terminal.Number(l.Stock-c.Left))
		}
	}
	return s
}

func (r *runs) replicas(now point) []string {
	if len(now.Replicas) > 0 {
		return slices.Sorted(maps.Keys(now.Replicas))
	}
	names := make([]string, max(1, len(r.s.Lab.Replicas)))
	for i := range names {
		names[i] = fmt.Sprintf("replica-%d", i+1)
	}
	return names
}
