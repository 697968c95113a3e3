package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"oversell/dash"
	"oversell/lab/load"
	"oversell/lab/report"
)

// dashCommand serves the page for a lab that others have brought up.
func dashCommand() *cobra.Command {
	var addr string
	var c dash.Config
	cmd := &cobra.Command{
		Use:   "dash",
		Short: "serve the page for a lab that runs already",
		Long: `Serves the page that oversell lab has too, for a lab that was brought up in another
way, such as docker compose. It can run, step and try; to break a lock it would have to stop
and freeze servers, which only oversell lab and oversell break can do.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, target := range append([]string{c.Lab.Target}, c.Lab.Replicas...) {
				if _, err := load.ParseTarget(target); err != nil {
					return &exit{2, fmt.Errorf("dash: %w", err)}
				}
			}
			if c.Lab.Token == "" {
				return &exit{2, errors.New("dash: --token: who may start a run?")}
			}
			ctx := cmd.Context()
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
			if err != nil {
				return fmt.Errorf("dash: %w", err)
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the page for %s is on %s\n", c.Lab.Target, listener.Addr())
			closePage := servePage(ctx, listener, c)
			<-ctx.Done()
			closePage()
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "addr", "127.0.0.1:8300", "host:port to listen on")
	f.StringVar(&c.Lab.Target, "target", "http://127.0.0.1:8080", "the lab's nginx, or one replica")
	f.StringSliceVar(&c.Lab.Replicas, "replicas", nil, "the replicas, separated by commas: two to step through a strategy")
	f.StringVar(&c.Lab.Token, "token", os.Getenv("LAB_TOKEN"), "the lab's token (default $LAB_TOKEN)")
	f.Lookup("token").DefValue = "" // not the environment's, which help would print
	return cmd
}

// servePage serves until the answer is called, which waits for what was begun there.
func servePage(ctx context.Context, listener net.Listener, c dash.Config) (end func()) {
	c.Machine, c.Versions = report.ThisMachine(ctx), report.Versions(version)
	serverVersions(ctx, c.Lab, c.Versions)
	page := dash.New(c)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(listener) }()
	return func() {
		page.Close()
		_ = server.Close()
	}
}
