package dash

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/rig"
)

// card is a strategy's card; Code is sent for one strategy only.
type card struct {
	api.Card
	Code []api.File `json:"code"`
}

// group is a part of the catalogue.
type group struct {
	Title Text
	Cards []card
}

// catalogue asks a replica for the strategies, and remembers them: they are compiled in.
type catalogue struct {
	shop rig.Addresses

	mu    sync.Mutex
	cards []card
}

// ask reads JSON from the shop. Through nginx, as one replica may be down.
func (l *catalogue) ask(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	shop := api.Client{Base: l.shop.Target, Token: l.shop.Token, HTTP: http.DefaultClient}
	return shop.Call(ctx, http.MethodGet, path, nil, answer)
}

// all asks the shop outside the lock: while the shop does not answer, each page would wait
// for the time-outs of all pages before it.
func (l *catalogue) all(ctx context.Context) ([]card, error) {
	l.mu.Lock()
	cards := l.cards
	l.mu.Unlock()
	if cards != nil {
		return cards, nil
	}
	if err := l.ask(ctx, "/strategies", &cards); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cards = cards
	return cards, nil
}

// one is a card with its code.
func (l *catalogue) one(ctx context.Context, id string) (card, error) {
	all, err := l.all(ctx)
	if err != nil {
		return card{}, err
	}
	if !slices.ContainsFunc(all, func(c card) bool { return c.ID == id }) {
		return card{}, refusal{http.StatusNotFound, Text{fmt.Sprintf("There is no strategy %q.", id), fmt.Sprintf("没有策略 %q。", id)}}
	}
	var c card
	err = l.ask(ctx, "/strategies/"+id, &c)
	return c, err
}

// groups are the cards by family, in the order in which the catalogue first has each.
func (l *catalogue) groups(ctx context.Context) ([]group, error) {
	all, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	titles := map[string]Text{
		"local": {"One process", "单进程"}, "mysql": {"MySQL", "MySQL"}, "redis": {"Redis", "Redis"},
		"zookeeper": {"ZooKeeper", "ZooKeeper"}, "etcd": {"etcd", "etcd"},
	}
	var groups []group
	places := map[string]int{}
	for _, c := range all {
		i, there := places[c.Family]
		if !there {
			title, known := titles[c.Family]
			if !known {
				title = Text{c.Family, c.Family}
			}
			i, places[c.Family] = len(groups), len(groups)
			groups = append(groups, group{Title: title})
		}
		groups[i].Cards = append(groups[i].Cards, c)
	}
	return groups, nil
}
