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
	return inBoth(func(lang string) template.HTML { return now.SVG("stage", lang) })
}

// moment returns what the stage shows: the newest point of the run, or the system before the first run.
func (r *runs) moment() stage.Stage {
	l, now, strategy := r.live, point{}, ""
	if len(l.Series) > 0 {
		of := l.Series[len(l.Series)-1]
		if strategy = of.Strategy; len(of.Points) > 0 {
			now = of.Points[len(of.Points)-1]
		}
	}
	s := r.s.system(strategy)
	if s.Row = terminal.Number(cmp.Or(l.Stock, 5000)); l.clients > 0 {
		s.Clients[0].Name = terminal.Number(l.clients)
	}
	if l.alone {
		s.Replicas = s.Replicas[:1]
	}
	answers := maps.Clone(now.Replicas)
	if now.Owner != nil {
		s.Holder = now.Owner.Replica
		if answers == nil {
			answers = map[string]int{}
		}
		answers[s.Holder] += 0 // a holder is drawn before its first answer
	}
	s.Replicas = answered(s.Replicas, answers)
	if c := now.Count; c != nil {
		s = withStock(s, l.Stock, c.Sold, c.Left)
	}
	return s
}

// answered returns the replicas with the number of their answers. The others keep their places until each has a name.
func answered(drawn []stage.Box, answers map[string]int) (all []stage.Box) {
	for name, n := range answers {
		b := stage.Box{Name: name}
		if n > 0 {
			b.Note = api.Textf("%s requests", "%s 个请求", terminal.Number(n))
		}
		all = append(all, b)
	}
	for _, b := range drawn {
		if _, there := answers[b.Name]; !there && len(all) < len(drawn) {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b stage.Box) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// system returns the system at rest, with the lock of a strategy.
func (s *Server) system(strategy string) stage.Stage {
	at := stage.Stage{Clients: []stage.Box{{Name: "100", Note: bilingual("clients", "个客户端")}}, Row: terminal.Number(5000)}
	for i := range max(1, len(s.Lab.Replicas)) {
		at.Replicas = append(at.Replicas, stage.Box{Name: fmt.Sprintf("replica-%d", i+1)})
	}
	if c, err := findCard(s.catalogue.known(), strategy, 0); err == nil {
		at.Lock, at.Server = stage.PlaceOf(c.Card.Card), map[string]string{"redis": "Redis"}[c.Stock]
	}
	return at
}

// withStock adds the stock that is left to the picture, and the lost updates.
func withStock(s stage.Stage, stock, sold, left int) stage.Stage {
	s.Row, s.Of = terminal.Number(left), terminal.Number(stock)
	if left-stock+sold > 0 {
		s.Alarm = api.Textf("%s sold, %s taken from stock", "卖出 %s，库存只减少 %s", terminal.Number(sold), terminal.Number(stock-left))
	}
	return s
}
