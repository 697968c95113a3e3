package rig

import (
	"context"
	"fmt"
	"net/http"

	"oversell/api"
)

// RollingRestart restarts the replicas one after the other, as an update of a service does. A
// replica is stopped when the one before it is ready, and nginx sends it requests again. restarted
// is called after each restart. The replicas should have a --drain, or requests fail.
func (r *Rig) RollingRestart(ctx context.Context, restarted func(*Server)) error {
	for _, s := range r.replicas {
		if err := r.restart(ctx, s); err != nil {
			return err
		}
		restarted(s)
	}
	return nil
}

func (r *Rig) restart(ctx context.Context, s *Server) error {
	p := s.running()
	if p == nil {
		return fmt.Errorf("rig: restart %s: it is not running", s.name)
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if p.err != nil {
		return fmt.Errorf("rig: restart %s: %w, its log ends with:\n%s", s.name, p.err, p.tail())
	}
	if err := s.BringUp(ctx); err != nil {
		return err
	}
	return Await(ctx, "nginx sends requests to "+s.name, func(ctx context.Context) error { return r.balanced(ctx, s) })
}

// balanced returns nil if s answered a request to nginx.
func (r *Rig) balanced(ctx context.Context, s *Server) error {
	if len(r.nginx) == 0 {
		return nil
	}
	once := http.Header{"Connection": {"close"}} // an open connection would delay a later Stop of nginx
	_, header, _, err := api.Exchange(ctx, api.Direct(), http.MethodGet, r.addrs.Target+"/healthz", once)
	if err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	if name := header.Get("X-Replica"); name != s.name {
		return fmt.Errorf("rig: %q answered", name)
	}
	return nil
}
