package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"

	"oversell/lab/suggest"
)

// Link is a proxy on the way from one server to another, such as from replica-1 to redis-1. Its
// methods may be called from several goroutines.
type Link struct {
	from, to string
	addr     string // where the proxy listens, as host:port

	changing sync.Mutex
	proxy    *toxiproxy.Proxy
	upstream string
}

// From returns the name of the server that opens the connections.
func (l *Link) From() string { return l.from }

// To returns the name of the server at the other end. SetUpstream does not change this name.
func (l *Link) To() string { return l.to }

// Addr returns the host:port of the proxy.
func (l *Link) Addr() string { return l.addr }

// Cut drops all data, in both directions, of old and new connections. Connections stay open: if one
// side closes a connection, the other side does not notice.
func (l *Link) Cut() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, direction := range []string{"upstream", "downstream"} {
		if err := l.add("cut "+direction, holeType, direction, new(hole)); err != nil {
			return err
		}
	}
	return nil
}

// Dropped returns the number of bytes and of ends of connections that Cut has dropped. Restore sets it back.
func (l *Link) Dropped() (sum int64) {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, direction := range []string{"upstream", "downstream"} {
		if toxic := l.proxy.Toxics.GetToxic("cut " + direction); toxic != nil {
			if h, is := toxic.Toxic.(*hole); is {
				sum += h.dropped.Load()
			}
		}
	}
	return sum
}

// Reset ends each connection, old or new, at its next request. The request is dropped.
func (l *Link) Reset() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.add("reset", "reset_peer", "upstream", new(toxics.ResetToxic))
}

// LoseReplies drops the next reply on each open connection, even to a heartbeat, and ends the connection. The server
// has executed the request by then. A client that then connects again loses nothing more.
func (l *Link) LoseReplies() error { return l.loseOnOpen(new(loss)) }

// Disconnect ends each open connection, as a proxy or a firewall that forgets them does. A client that then connects
// again loses nothing more.
func (l *Link) Disconnect() error { return l.loseOnOpen(&loss{Now: true}) }

func (l *Link) loseOnOpen(what *loss) error {
	if err := l.lose(what); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // Toxiproxy arms the open connections in goroutines of their own
	if armed := l.armed(); armed != nil {
		armed.over.Store(true)
	}
	return nil
}

func (l *Link) lose(what *loss) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if l.proxy.Toxics.GetToxic(lossType) != nil {
		return fmt.Errorf("rig: %s: a lost reply is armed already: Restore the link first", l)
	}
	return l.add(lossType, lossType, "downstream", what)
}

// HasLostReply reports whether a reply was lost, by LoseReplies or LoseAnswer, or a connection by Disconnect. Restore sets this back.
func (l *Link) HasLostReply() bool {
	armed := l.armed()
	return armed != nil && armed.lost.Load()
}

// armed returns the armed loss, or nil.
func (l *Link) armed() *loss {
	l.changing.Lock()
	defer l.changing.Unlock()
	if toxic := l.proxy.Toxics.GetToxic(lossType); toxic != nil {
		armed, _ := toxic.Toxic.(*loss) // nil is impossible: only lose adds a toxic with this name
		return armed
	}
	return nil
}

// Delay delays every answer by d, in whole ms, of old and new connections. A round trip then takes
// as much longer as with half of d in each direction, and one direction needs one timer only.
func (l *Link) Delay(d time.Duration) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.add("delay", "latency", "downstream", &toxics.LatencyToxic{Latency: d.Milliseconds()})
}

// Restore ends all faults, also a delay. Cut connections end now, because data are missing in them.
func (l *Link) Restore() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.proxy.Toxics.ResetToxics(context.Background())
	return l.set(l.upstream)
}

// SetUpstream makes the link lead to the server at addr, a host:port. All connections end.
func (l *Link) SetUpstream(addr string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.upstream = addr
	return l.set(addr)
}

// String returns, for example, "replica-1 to redis-1".
func (l *Link) String() string { return l.from + " to " + l.to }

func (l *Link) set(upstream string) error {
	if err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.addr, Upstream: upstream, Enabled: true}); err != nil {
		return fmt.Errorf("rig: %s: %w", l, err)
	}
	return nil
}

func (l *Link) add(name, kind, direction string, t toxics.Toxic) error {
	if l.proxy.Toxics.GetToxic(name) != nil {
		return nil
	}
	text, err := json.Marshal(toxics.ToxicWrapper{Name: name, Type: kind, Stream: direction, Toxicity: 1, Toxic: t})
	if err == nil {
		_, err = l.proxy.Toxics.AddToxicJson(bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("rig: %s: %s: %w", l, name, err)
	}
	return nil
}

func (r *Rig) addLink(from string, to *Server) *Link {
	toxics.Register(holeType, new(hole)) // a repeated call does no harm
	toxics.Register(lossType, new(loss))
	toxics.Register(gateType, new(commandGate))
	// The proxies need a Toxiproxy server for its logger and metrics. This server never listens.
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{from: from, to: to.name, addr: r.takeAddr(), upstream: to.addr}
	l.proxy = toxiproxy.NewProxy(server, l.String(), l.addr, l.upstream)
	r.check(l.set(l.upstream))
	r.links = append(r.links, l)
	return l
}

// Links returns all links. Only Config.Proxied and Config.RedisReplica make links.
func (r *Rig) Links() []*Link { return slices.Clone(r.links) }

// Link returns the link from a server to another: Link("replica-1", "mysql").
func (r *Rig) Link(from, to string) (*Link, error) {
	return suggest.Find("link", (&Link{from: from, to: to}).String(), r.links, (*Link).String)
}
