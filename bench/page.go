package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// audiences are who looks at the page while a strategy is loaded from it.
var audiences = []struct {
	name   string
	pages  int  // open streams, which read all that they are sent
	chrome bool // and a browser on this machine, which draws it
	least  float64
}{
	{"nobody", 0, false, 0}, {"one page", 1, false, 0.95}, {"200 pages", 200, false, 0.9}, {"a browser on the same cores", 0, true, 0},
}

// page measures what it costs the load that somebody looks at it.
func (b bench) page(ctx context.Context, l lab) error {
	fmt.Fprintf(b.out, "## The page\n\n%d clients x %d requests, started from the page, while it is open; %d rounds of each in turn. Medians; in brackets the range. A page reads its stream; a browser draws it, too.\n\n", b.load.clients, b.load.loops, b.rounds)
	fmt.Fprintf(b.out, "| strategy | who looks | answers /s | ratio | wanted |\n|---|---|---:|---:|---:|\n")
	for _, strategy := range []string{"redis", "atomic"} {
		heats := map[string][]heat{}
		for range b.rounds {
			for _, a := range audiences {
				leave, err := l.look(ctx, a.pages, a.chrome)
				if err != nil {
					return err
				}
				rate, err := l.runFromPage(ctx, strategy, b.load)
				leave()
				if err != nil {
					return fmt.Errorf("%s, %s: %w", strategy, a.name, err)
				}
				heats[a.name] = append(heats[a.name], heat{perSecond: rate})
			}
		}
		for _, a := range audiences {
			wanted := "-"
			if a.least > 0 {
				wanted = fmt.Sprintf("%.2f", a.least)
			}
			fmt.Fprintf(b.out, "| %s | %s | %s | %.2f | %s |\n", strategy, a.name, ranged(heats[a.name], rateOf, 0),
				middle(heats[a.name], rateOf)/middle(heats[audiences[0].name], rateOf), wanted)
		}
	}
	fmt.Fprintln(b.out)
	return nil
}

// look opens pages. What it returns closes them.
func (l lab) look(ctx context.Context, pages int, chrome bool) (leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	leave = func() { cancel(); open.Wait() }
	for range pages {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Target+"/dash/stream/run", nil)
		if err != nil {
			leave()
			return nil, err
		}
		answer, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			leave()
			return nil, err
		}
		open.Go(func() {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		})
	}
	if !chrome {
		return leave, nil
	}
	profile := filepath.Join(l.dir, "browser")
	browser := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--user-data-dir="+profile, l.Target+"/")
	if err := browser.Start(); err != nil {
		leave()
		return nil, err
	}
	open.Go(func() { _ = browser.Wait() })
	time.Sleep(3 * time.Second) // it has drawn the page by then, or is late for both of us
	return leave, nil
}

// runFromPage starts a run as the page's button does, and returns its rate.
func (l lab) runFromPage(ctx context.Context, strategy string, load volume) (perSecond float64, err error) {
	post := func(path string, form url.Values) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Target+path, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		r.Header.Set("X-Lab-Token", l.Token)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusNoContent {
			text, _ := io.ReadAll(answer.Body)
			return fmt.Errorf("%s: %s: %s", path, answer.Status, text)
		}
		return nil
	}
	if err := post("/dash/run/forget", nil); err != nil {
		return 0, err
	}
	if err := post("/dash/run/start", url.Values{
		"strategy": {strategy}, "clients": {strconv.Itoa(load.clients)}, "loops": {strconv.Itoa(load.loops)},
		"stock": {strconv.Itoa(load.clients * load.loops)}, "hold": {"0"}, "wait": {"10000"},
	}); err != nil {
		return 0, err
	}
	var results []struct {
		PerSecond float64 `json:"throughput_per_s"`
		Lost      int     `json:"lost_updates"`
		Errors    int     `json:"errors"`
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := l.ask(ctx, http.MethodGet, l.Target+"/dash/results/all.json", &results) // 404 until it is there
		if err == nil && len(results) == 1 {
			break
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("no result in a minute: %w", err)
		}
	}
	if results[0].Lost != 0 || results[0].Errors > 0 {
		return 0, fmt.Errorf("lost or failed: %+v", results[0])
	}
	return results[0].PerSecond, nil
}
