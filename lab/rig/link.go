package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Line is the line from one server to another, such as replica-1's to redis-1: a proxy on
// a port of its own, which the first takes for the second. Its methods may be called from
// several goroutines.
type Link struct {
	from, to string
	addr     string // where the proxy listens, as host:port

	changing sync.Mutex
	proxy    *toxiproxy.Proxy
	upstream string
}

// From is the name of the server that calls, To of the one that answers.
func (l *Link) From() string { return l.from }

// To is the name of the server that the line was made for. See SetUpstream.
func (l *Link) To() string { return l.to }

// Addr is where the line begins, as host:port: what From takes for To's address.
func (l *Link) Addr() string { return l.addr }

// Cut swallows all that is said, both ways, by old connections and by new ones. Nobody is
// told: connections stay open, and even their end does not arrive.
func (l *Link) Cut() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, direction := range []string{"upstream", "downstream"} {
		if err := l.add(toxic{Name: "cut " + direction, Type: holeType, Stream: direction}); err != nil {
			return err
		}
	}
	return nil
}

// Reset ends all connections and refuses new ones, as if To had died.
func (l *Link) Reset() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.set(l.upstream, false)
}

// LoseReply has the next reply that contains text lost: it never arrives, and its
// connection ends, though the request was done. An empty text stands for any reply, be it
// to the heartbeat of a client that waits for nothing else. The channel is closed when a
// reply is lost; until then the line listens.
func (l *Link) LoseReply(text string) (lost <-chan struct{}, err error) {
	l.changing.Lock()
	defer l.changing.Unlock()
	if l.proxy.Toxics.GetToxic(lossType) != nil {
		return nil, fmt.Errorf("rig: %s: it waits for a reply to lose already", l)
	}
	if err := l.add(toxic{Name: lossType, Type: lossType, Stream: "downstream", Attributes: map[string]string{"text": text}}); err != nil {
		return nil, err
	}
	return l.proxy.Toxics.GetToxic(lossType).Toxic.(*loss).lost(), nil //nolint:forcetypeassert,errcheck // added just now
}

// Restore takes Cut, Reset and LoseReply back. Connections that were cut end now: what
// was swallowed is missing in them. A line that nothing happened to is fine.
func (l *Link) Restore() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.proxy.Toxics.ResetToxics(context.Background())
	return l.set(l.upstream, true)
}

// SetUpstream has the line lead to the server at addr, a host:port. All connections end.
func (l *Link) SetUpstream(addr string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.upstream = addr
	return l.set(addr, l.proxy.Enabled)
}

// String is such as `replica-1 to redis-1`.
func (l *Link) String() string { return l.from + " to " + l.to }

// set changes where the line leads and whether it takes connections. Nothing happens if
// that is so already.
func (l *Link) set(upstream string, enabled bool) error {
	if err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.addr, Upstream: upstream, Enabled: enabled}); err != nil {
		return fmt.Errorf("rig: %s: %w", l, err)
	}
	return nil
}

// toxic is what toxiproxy wants to hear to add one.
type toxic struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Stream     string `json:"stream"`
	Attributes any    `json:"attributes,omitempty"`
}

// add adds a toxic, unless it is there.
func (l *Link) add(t toxic) error {
	if l.proxy.Toxics.GetToxic(t.Name) != nil {
		return nil
	}
	text, err := json.Marshal(t)
	if err == nil {
		_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	}
	if err != nil {
		return fmt.Errorf("rig: %s: %s: %w", l, t.Name, err)
	}
	return nil
}

// close ends the line, which must be restored: see hole.
func (l *Link) close() {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.proxy.Stop()
}

// addLine makes the line from a server to another and opens it.
func (r *Rig) addLink(from string, to *Server) (*Link, error) {
	port, err := r.ports.take(0)
	if err != nil {
		return nil, err
	}
	registerToxics()
	// The server is only there to hold the logger and the metrics, which we do without: it
	// never listens.
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{from: from, to: to.name, addr: hostPort(port), upstream: to.addr}
	l.proxy = toxiproxy.NewProxy(server, l.String(), l.addr, l.upstream)
	if err := l.set(l.upstream, true); err != nil {
		return nil, err
	}
	r.links = append(r.links, l)
	return l, nil
}

// Lines are all lines; there are none without Config.Proxied and Config.RedisReplica.
func (r *Rig) Links() []*Link { return append([]*Link{}, r.links...) }

// Line returns the line from a server to another: Line("replica-1", "mysql").
func (r *Rig) Link(from, to string) (*Link, error) {
	var names []string
	for _, l := range r.links {
		if l.from == from && l.to == to {
			return l, nil
		}
		names = append(names, l.String())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("rig: no line from %s to %s: the lab was started without proxies", from, to)
	}
	return nil, fmt.Errorf("rig: no line from %s to %s: there are %s", from, to, strings.Join(names, ", "))
}
