package dash

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"

	"oversell/api"
	"oversell/view/stage"
	"oversell/view/terminal"
)

// picture draws a point of a run. Its numbers, which the page fills in, have names in braces: so a few pictures are
// enough for all points, also when the page replays them.
func (r *runs) picture(l *live, strategy string, p point) api.Text {
	s := r.s.system(strategy)
	s.Clients[0].Name, s.Row, s.Of = terminal.Number(l.clients), "{left}", terminal.Number(l.Stock)
	if l.alone {
		s.Replicas = s.Replicas[:1]
	}
	answers := map[string]int{}
	if p.Owner != nil {
		s.Holder = p.Owner.Replica
		answers[s.Holder] = 0 // a holder is drawn before its first answer
	}
	maps.Copy(answers, p.Replicas)
	s.Replicas = answered(s.Replicas, answers)
	if p.Left != nil && lost(l.Stock, p.Sold, *p.Left) > 0 {
		s.Alarm = alarm("{sold}", "{taken}")
	}
	return drawn(s)
}

func drawn(s stage.Stage) api.Text {
	return inBoth(func(lang string) template.HTML { return s.SVG("stage", lang) })
}

// answered returns the replicas with the number of their answers. The others keep their places until each has a name.
func answered(drawn []stage.Box, answers map[string]int) (all []stage.Box) {
	for name, n := range answers {
		b := stage.Box{Name: name}
		if n > 0 {
			b.Note = api.Textf("{%s} requests", "{%s} 个请求", name)
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
		at.Lock, at.Server = stage.PlaceOf(c), map[string]string{"redis": "Redis"}[c.Stock]
	}
	return at
}

// withStock adds the stock that is left to the picture, and the lost updates.
func withStock(s stage.Stage, stock, sold, left int) stage.Stage {
	s.Row, s.Of = terminal.Number(left), terminal.Number(stock)
	if lost(stock, sold, left) > 0 {
		s.Alarm = alarm(terminal.Number(sold), terminal.Number(stock-left))
	}
	return s
}

// lost returns the number of lost updates.
func lost(stock, sold, left int) int { return sold - (stock - left) }

func alarm(sold, taken string) api.Text {
	return api.Textf("%s sold, %s taken from stock", "卖出 %s，库存只减少 %s", sold, taken)
}
