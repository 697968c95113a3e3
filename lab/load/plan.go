package load

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// These limits of a plan save memory: every request is kept until the report is written.
const (
	MaxClients  = 10_000
	MaxRequests = 1_000_000
)

// The service accepts a hold, a wait and a lease of at most MaxDuration, and a lease of at least
// MinLease.
const (
	MaxDuration = 60 * time.Second
	MinLease    = 100 * time.Millisecond
)

// answerTime is the part of a time-out beyond Outside, Wait and Hold. It is enough for a loaded service.
const answerTime = 10 * time.Second

// ErrPlan marks the plan of a load, a comparison or an experiment that cannot be run.
var ErrPlan = errors.New("invalid plan")

// InvalidPlan makes errors.Is(err, ErrPlan) true, without the text of ErrPlan in the text of err.
func InvalidPlan(err error) error { return planError{err} }

type planError struct{ error }

func (planError) Is(target error) bool { return target == ErrPlan }

func (e planError) Unwrap() error { return e.error }

// Plan has the parameters of a load.
type Plan struct {
	Target   string // base URL, such as http://127.0.0.1:8080
	Path     string // empty means /check/lock
	Strategy string
	Product  int
	Qty      int

	Clients int
	Loops   int // number of requests per client
	// Until lets each client of a closed loop send more than Loops requests, until it is closed.
	// nil means Loops requests.
	Until  <-chan struct{}
	RampUp time.Duration // time in which the clients start, evenly spread

	// Rate makes an open loop, with at most Clients requests in flight. 0 means a closed loop.
	Rate Rate
	// Every is the minimum time between two requests of a client in a closed loop. As with
	// JMeter's constant throughput timer, a late client does not catch up. 0 means no minimum.
	Every time.Duration
	// Length ends the run early; requests in flight are completed. 0 means no limit.
	Length time.Duration

	Hold    time.Duration // parameter: extra time inside the critical section
	Outside time.Duration // parameter: extra time before the lock
	Wait    time.Duration // parameter: maximum wait for the lock
	Pause   time.Duration // parameter: pause between two tries; 0 means the strategy's own
	Lease   time.Duration // parameter: lease of the lock; 0 means the strategy's default
	Timeout time.Duration // of a request; 0 means Outside + Wait + Hold + 10 s
	Seed    int64         // determines the order in which the clients start
}

// Validate reports the first value that is out of bounds, by its flag's name.
func (p Plan) Validate() error {
	if _, err := ParseTarget(p.Target); err != nil {
		return err
	}
	names := []string{"hold", "outside", "wait", "pause"}
	for i, d := range []time.Duration{p.Hold, p.Outside, p.Wait, p.Pause} {
		if d < 0 || d > MaxDuration {
			return fmt.Errorf("%s %v: must be 0s to %v", names[i], d, MaxDuration)
		}
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
		return fmt.Errorf("ramp-up %v: cannot be used with a rate, which sets the time of each request", p.RampUp)
	case p.Rate != 0 && p.Every != 0:
		return fmt.Errorf("every %v: cannot be used with a rate, which sets the time of each request", p.Every)
	case p.Lease != 0 && (p.Lease < MinLease || p.Lease > MaxDuration):
		return fmt.Errorf("lease %v: must be %v to %v", p.Lease, MinLease, MaxDuration)
	case p.Timeout != 0 && p.Timeout <= p.Wait+p.Hold:
		return fmt.Errorf("timeout %v: must be above wait + hold, %v", p.Timeout, p.Wait+p.Hold)
	}
	return nil
}

// ParseTarget reads the base URL of a lab. A bare host:port means http.
func ParseTarget(target string) (*url.URL, error) {
	full := target
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("target %q: must be a URL such as http://127.0.0.1:8080", target)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// URL returns the address of the plan's requests.
func (p Plan) URL() (string, error) {
	u, err := ParseTarget(p.Target)
	if err != nil {
		return "", err
	}
	if p.Path != "" {
		return u.JoinPath(p.Path).String(), nil
	}
	q := url.Values{
		"strategy": {p.Strategy}, "product": {strconv.Itoa(p.Product)}, "qty": {strconv.Itoa(p.Qty)},
		"hold": {p.Hold.String()}, "wait": {p.Wait.String()},
	}
	if p.Outside > 0 {
		q.Set("outside", p.Outside.String())
	}
	if p.Pause > 0 {
		q.Set("pause", p.Pause.String())
	}
	if p.Lease > 0 {
		q.Set("lease", p.Lease.String())
	}
	return u.JoinPath("check", "lock").String() + "?" + q.Encode(), nil
}

func (p Plan) timeout() time.Duration {
	return cmp.Or(p.Timeout, p.Outside+p.Wait+p.Hold+answerTime)
}

// request is the HTTP request of a plan, and the server to dial.
type request struct {
	addr  string // host:port to dial
	host  string // the name in the server's certificate
	tls   bool
	roots *x509.CertPool // nil means the system's
	bytes []byte
}

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
	port := "80"
	if r.tls {
		port = "443"
	}
	r.addr = net.JoinHostPort(r.host, cmp.Or(u.Port(), port))
	r.bytes = []byte("GET " + u.RequestURI() + " HTTP/1.1\r\n" +
		"Host: " + u.Host + "\r\n" +
		"User-Agent: oversell-run\r\n" +
		"Accept: application/json\r\n\r\n")
	return full, r, nil
}
