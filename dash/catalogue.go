package dash

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"oversell/api"
)

type group struct {
	Title api.Text
	Cards []api.Card
}

// catalogue reads all cards from the service once, because the cards of a service never change.
type catalogue struct {
	nginx api.Client // a request through nginx succeeds if any replica answers

	mu    sync.Mutex
	cards []api.Card
}

// get reads what the service has at a path. It returns the error missing if there is nothing.
func (l *catalogue) get(ctx context.Context, path string, answer any, missing error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := l.nginx.Call(ctx, http.MethodGet, path, nil, answer)
	if refused := (*api.Error)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return missing
	}
	if err != nil {
		return reject(http.StatusServiceUnavailable, "The service does not answer: %v", "服务没有应答：%v", err)
	}
	return nil
}

func (l *catalogue) known() []api.Card {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cards
}

// all returns the cards of all strategies. It does not lock the mutex during its request. Otherwise
// a page would also wait for the time-outs of other pages' requests.
func (l *catalogue) all(ctx context.Context) ([]api.Card, error) {
	cards := l.known()
	if cards != nil {
		return cards, nil
	}
	if err := l.get(ctx, "/strategies", &cards, errors.New("no service of oversell")); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cards = cards
	return cards, nil
}

func findCard(cards []api.Card, id string, status int) (c api.Card, err error) {
	i := slices.IndexFunc(cards, func(c api.Card) bool { return c.ID == id })
	if i < 0 {
		return c, noStrategy(status, id)
	}
	return cards[i], nil
}

func noStrategy(status int, id string) error {
	return reject(status, "Strategy %q does not exist.", "没有策略 %q。", id)
}

func (l *catalogue) one(ctx context.Context, id string) (c api.Card, err error) {
	err = l.get(ctx, "/strategies/"+url.PathEscape(id), &c, noStrategy(http.StatusNotFound, id))
	return c, err
}

func groupsOf(all []api.Card) (groups []group) {
	titles := map[string]api.Text{
		"local": {EN: "One process (the long tutorial, 1.1 to 1.5)", ZH: "单进程（长教程 1.1 到 1.5）"}, "mysql": {EN: "MySQL (1.6 and 2)", ZH: "MySQL（1.6 和 2）"},
		"redis": {EN: "Redis (3)", ZH: "Redis（3）"}, "zookeeper": {EN: "ZooKeeper (4)", ZH: "ZooKeeper（4）"}, "etcd": {EN: "etcd (not in the tutorial)", ZH: "etcd（教程之外）"},
	}
	for _, c := range all {
		title := cmp.Or(titles[c.Family], api.Verbatim(c.Family))
		i := slices.IndexFunc(groups, func(g group) bool { return g.Title == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{Title: title})
		}
		groups[i].Cards = append(groups[i].Cards, c)
	}
	return groups
}
