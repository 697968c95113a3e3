package load

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The bounds of a plan. Every request is kept in memory until the report is written.
const (
	MaxClients  = 10_000
	MaxRequests = 1_000_000
)

// MaxDuration is the longest hold and the longest wait that the service accepts.
const MaxDuration = 60 * time.Second

// patience is what a request may take beyond its own wait and hold before the client
// gives up: time enough for a loaded server to say "not acquired" itself.
const patience = 10 * time.Second

// Plan says what to send, and how much of it.
type Plan struct {
	Target   string // base URL, such as http://127.0.0.1:8080
	Path     string // what is asked for instead of a sale; empty: /check/lock
	Strategy string
	Product  int
	Qty      int

	Clients int
	Loops   int           // requests of each client
	RampUp  time.Duration // the clients start evenly spread over it

	// Rate makes an open loop: Clients x Loops requests are due at even times, and Clients
	// is how many can be under way at once. 0: a closed loop.
	Rate Rate
	// Every slows a closed loop down: a client asks once in so long at most, and does not
	// make up for what it missed, as JMeter's constant throughput timer. 0: at once again.
	Every time.Duration
	// Length is when the clients ask no more, though requests are left; what is under way
	// then is finished. 0: never.
	Length time.Duration

	Hold    time.Duration // asked of the service: extra time inside the critical section
	Wait    time.Duration // asked of the service: patience in the lock's queue
	Timeout time.Duration // the client's own patience; 0: Wait + Hold + 10 s
	Seed    int64         // draws the order in which the clients start
}

// Validate reports the first value that is out of bounds, by its flag's name.
func (p Plan) Validate() error {
	if _, err := ParseTarget(p.Target); err != nil {
		return err
	}
	switch {
	case p.Clients < 1 || p.Clients > MaxClients:
		return fmt.Errorf("clients %d: must be 1 to %d", p.Clients, MaxClients)
	case p.Loops < 1:
		return fmt.Errorf("loops %d: must be 1 or more", p.Loops)
	case p.Loops > MaxRequests/p.Clients:
		return fmt.Errorf("clients %d x loops %d: more than %d requests in one run", p.Clients, p.Loops, MaxRequests)
	case p.Product < 1:
		return fmt.Errorf("product %d: must be 1 or more", p.Product)
	case p.Qty < 1:
		return fmt.Errorf("qty %d: must be 1 or more", p.Qty)
	case p.RampUp < 0:
		return fmt.Errorf("ramp-up %v: must not be negative", p.RampUp)
	case p.Rate != 0 && !p.Rate.valid():
		return fmt.Errorf("rate %v: must be 1/m to %v", p.Rate, maxRate)
	case p.Rate != 0 && p.RampUp != 0:
		return fmt.Errorf("ramp-up %v: not with a rate, which says when each request is due", p.RampUp)
	case p.Rate != 0 && p.Every != 0:
		return fmt.Errorf("every %v: not with a rate, which says when each request is due", p.Every)
	case p.Hold < 0 || p.Hold > MaxDuration:
		return fmt.Errorf("hold %v: must be 0s to %v", p.Hold, MaxDuration)
	case p.Wait < 0 || p.Wait > MaxDuration:
		return fmt.Errorf("wait %v: must be 0s to %v", p.Wait, MaxDuration)
	case p.Timeout != 0 && p.Timeout <= p.Wait+p.Hold:
		return fmt.Errorf("timeout %v: must be above wait + hold, %v", p.Timeout, p.Wait+p.Hold)
	}
	return nil
}

// ParseTarget reads the base URL of a lab. A bare host:port means http.
func ParseTarget(target string) (*url.URL, error) {
	if target == "" {
		return nil, errors.New("target: empty, want a URL such as http://127.0.0.1:8080")
	}
	full := target
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("target %q: want a URL such as http://127.0.0.1:8080", target)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// URL is the address that every request of the plan asks for.
func (p Plan) URL() (string, error) {
	u, err := ParseTarget(p.Target)
	if err != nil {
		return "", err
	}
	if p.Path != "" {
		return u.JoinPath(p.Path).String(), nil
	}
	q := url.Values{}
	q.Set("strategy", p.Strategy)
	q.Set("product", strconv.Itoa(p.Product))
	q.Set("qty", strconv.Itoa(p.Qty))
	q.Set("hold", p.Hold.String())
	q.Set("wait", p.Wait.String())
	return u.JoinPath("check", "lock").String() + "?" + q.Encode(), nil
}

func (p Plan) timeout() time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return p.Wait + p.Hold + patience
}

// request is what goes over the wire, the same bytes every time.
type request struct {
	addr  string // host:port to dial
	host  string // for TLS
	tls   bool
	roots *x509.CertPool // nil: the system's
	bytes []byte
}

// request gives the URL, and the same as it is dialled and written.
func (p Plan) request() (string, request, error) {
	full, err := p.URL()
	if err != nil {
		return "", request{}, err
	}
	u, err := url.Parse(full)
	if err != nil {
		return "", request{}, fmt.Errorf("load: %w", err)
	}
	r := request{host: u.Hostname(), tls: u.Scheme == "https"}
	port := u.Port()
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[r.tls]
	}
	r.addr = net.JoinHostPort(r.host, port)
	r.bytes = []byte("GET " + u.RequestURI() + " HTTP/1.1\r\n" +
		"Host: " + u.Host + "\r\n" +
		"User-Agent: oversell-run\r\n" +
		"Accept: application/json\r\n\r\n")
	return full, r, nil
}
