package main

import (
	"context"
	"errors"
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

// audience is the number of pages that are open while a strategy is under load.
type audience struct {
	name    string
	pages   int  // open streams whose messages are read
	browser bool // whether a browser on this machine also draws the page
	least   float64
}

func (a audience) String() string { return a.name }

var audiences = []audience{
	{"nobody", 0, false, 0}, {"one page", 1, false, 0.95}, {"200 pages", 200, false, 0.9}, {"a browser on the same cores", 0, true, 0},
}

// page measures how much open pages lower the rate of sales.
func (b bench) page(ctx context.Context) error {
	b.printf("## The page\n\n%d clients x %d requests, started from the page, while it is open; %d rounds of each in turn. Medians; in brackets the range. A page reads its stream; a browser also draws it.\n\n", b.load.clients, b.load.loops, b.rounds)
	b.printf("| strategy | viewers | answers /s | ratio | wanted |\n|---|---|---:|---:|---:|\n")
	for _, strategy := range []string{"redis", "atomic"} {
		measured, err := inTurn(b, audiences, func(a audience) (figures, error) {
			leave, err := b.lab.openPages(ctx, a)
			defer leave()
			if err != nil {
				return figures{}, err
			}
			return b.lab.runFromPage(ctx, strategy, b.load)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		for _, a := range audiences {
			b.printf("| %s | %s | %s | %.2f | %s |\n", strategy, a.name, ranged(measured[a], rate, 0),
				median(measured[a], rate)/median(measured[audiences[0]], rate), orDash("%.2f", a.least))
		}
	}
	b.printf("\n")
	return nil
}

// openPages opens the pages of an audience. leave closes them.
func (l lab) openPages(ctx context.Context, a audience) (leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	leave = func() { cancel(); open.Wait() }
	for range a.pages {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Target+"/dash/stream/run", nil)
		if err != nil {
			return leave, err
		}
		answer, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			return leave, err
		}
		open.Go(func() {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		})
	}
	if !a.browser {
		return leave, nil
	}
	// Not the command in PATH: this is a script, whose end would leave the browser running.
	browser := exec.CommandContext(ctx, "/usr/lib/chromium/chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
		"--user-data-dir="+filepath.Join(l.dir, "browser"), l.Target+"/")
	if err := browser.Start(); err != nil {
		return leave, err
	}
	open.Go(func() { _ = browser.Wait() })
	time.Sleep(3 * time.Second) // gives the browser time to draw the page
	return leave, nil
}

// post sends a form to the server of the page.
func (l lab) post(ctx context.Context, path string, form url.Values) error {
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

// runFromPage starts a run in the same way as the page's button, and returns the result.
func (l lab) runFromPage(ctx context.Context, strategy string, load volume) (figures, error) {
	err := errors.Join(l.post(ctx, "/dash/run/forget", nil), l.post(ctx, "/dash/run/start", url.Values{
		"strategy": {strategy}, "clients": {strconv.Itoa(load.clients)}, "loops": {strconv.Itoa(load.loops)},
		"stock": {strconv.Itoa(load.clients * load.loops)}, "hold": {"0"}, "wait": {"10000"},
	}))
	if err != nil {
		return figures{}, err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var results []runResult
		err := l.api(l.Target).Call(ctx, http.MethodGet, "/dash/results/all.json", nil, &results) // 404 until the run ends
		switch {
		case err == nil && len(results) == 1 && (results[0].Lost != 0 || results[0].Errors > 0):
			return figures{}, fmt.Errorf("lost updates or failed requests: %+v", results[0])
		case err == nil && len(results) == 1:
			return results[0].figures(), nil
		case time.Now().After(deadline):
			return figures{}, fmt.Errorf("no result within a minute: %w", err)
		}
	}
}
