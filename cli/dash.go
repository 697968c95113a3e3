package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"oversell/dash"
	"oversell/lab/backend"
	"oversell/lab/load"
	"oversell/lab/measure"
)

func dashCommand() *cobra.Command {
	var addr string
	var c dash.Config
	cmd := &cobra.Command{
		Use:   "dash",
		Short: "Serve the page for a lab that is already running",
		Long: `Serves the page of oversell lab for a lab that was started in another way, such as docker
compose. It runs and steps through strategies, and runs the primitives. It cannot break locks,
because only oversell lab and oversell break can stop and freeze servers.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, target := range append([]string{c.Lab.Target}, c.Lab.Replicas...) {
				if _, err := load.ParseTarget(target); err != nil {
					return &exit{2, err}
				}
			}
			if c.Lab.Token == "" {
				return usage("--token is missing: the page needs the lab's token to start a run")
			}
			ctx := cmd.Context()
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the page for %s is on %s\n", c.Lab.Target, listener.Addr())
			closePage := servePage(ctx, listener, nil, c)
			<-ctx.Done()
			closePage()
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "addr", "127.0.0.1:8300", "host:port to listen on")
	f.StringVar(&c.Lab.Target, "target", "http://127.0.0.1:8080", "the lab's nginx, or one replica")
	f.StringSliceVar(&c.Lab.Replicas, "replicas", nil, "the replicas, separated by commas: stepping through a strategy needs two")
	addToken(f, &c.Lab.Token, "the lab's token (default $LAB_TOKEN)")
	return cmd
}

// servePage serves the page until end is called, and serves phones on a second listener, unless it is
// nil. end also stops the page's job and waits for it.
func servePage(ctx context.Context, listener, phones net.Listener, c dash.Config) (end func()) {
	c.Machine, c.Versions = measure.ThisMachine(ctx), measure.Versions(version)
	backend.Versions(ctx, c.Versions, c.Lab.MySQL, c.Lab.Redis, c.Lab.Zookeeper, c.Lab.Etcd)
	c.Program, _ = os.Executable() // without it, only the lessons have no commands
	page := dash.New(c)
	serve := func(listener net.Listener, handler http.Handler) *http.Server {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
		go func() { _ = server.Serve(listener) }()
		return server
	}
	servers := []*http.Server{serve(listener, page)}
	if phones != nil {
		servers = append(servers, serve(phones, page.Viewers()))
	}
	return func() {
		page.Close()
		for _, server := range servers {
			_ = server.Close()
		}
	}
}
