package rig_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// serve runs in place of `oversell serve`: a small HTTP server, so that the tests of the rig need
// no real service.
func serve() {
	flag := func(name string) string { return os.Args[slices.Index(os.Args, name)+1] }
	server := &http.Server{Addr: flag("--addr"), Handler: routes(flag("--replica")), ReadHeaderTimeout: time.Minute}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		if err := server.ListenAndServe(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	<-ctx.Done()
	os.Exit(0)
}

func routes(name string) http.Handler {
	var waiting, hungUp atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Replica", name) })
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {
		if slices.Contains(os.Args, "--dies-when-asked-for-its-backends") {
			_, _ = fmt.Fprintln(os.Stderr, "the last words")
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	mux.HandleFunc("GET /name", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, name) })
	mux.HandleFunc("GET /env", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, os.Environ()) })
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, os.Getenv("LAB_TOKEN")) })
	mux.HandleFunc("GET /from", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.Header.Get("X-Forwarded-For")) })
	mux.HandleFunc("/echoed", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	// A replica that stops answers like replica-1 here.
	mux.HandleFunc("/rejected", func(w http.ResponseWriter, r *http.Request) {
		if name == "replica-1" {
			status, _ := strconv.Atoi(r.Header.Get("X-Retry-Status"))
			w.WriteHeader(status)
		}
		text, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", name, text)
	})
	// This route kills the process during the request.
	mux.HandleFunc("GET /die", func(http.ResponseWriter, *http.Request) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	mux.HandleFunc("POST /length", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n)
	})
	// This route counts a request, waits until its client has disconnected, and counts that too.
	mux.HandleFunc("GET /wait", func(_ http.ResponseWriter, r *http.Request) {
		waiting.Add(1)
		<-r.Context().Done()
		hungUp.Add(1)
	})
	mux.HandleFunc("GET /waiting", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, waiting.Load()) })
	mux.HandleFunc("GET /hung-up", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, hungUp.Load()) })
	// This route sends one event, and keeps the connection open.
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "data: hello\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return mux
}
