package dash_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/chromedp"

	"oversell/dash"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

const token = "class"

// shop is the lab that all tests look at, its page included.
var shop *rig.Rig

func TestMain(m *testing.M) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cfg := rig.FullLab("", token)
	cfg.Ports, cfg.Page = rig.Ports{}, listener.Addr().String()
	rigtest.MainWith(m, cfg, func(r *rig.Rig) {
		shop = r
		// The lab's program was built into its folder; what is broken is another lab of it.
		page := dash.New(dash.Config{Lab: r.Addresses(), Binary: r.Config().Binary})
		go func() { _ = http.Serve(listener, page) }() //nolint:gosec // for as long as the tests run
	})
}

// address is a page's address with the token, as the lab prints it.
func address(path string) string { return shop.Addresses().Target + path + "#token=" + token }

// window is a tab of a browser.
type window interface{ context.Context }

// browser opens a tab of a headless Chromium: with the flags, such as lang=zh.
func browser(t *testing.T, flags ...chromedp.ExecAllocatorOption) window {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(options, flags...)...)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	// Now, so that the browser does not end with the patience: then it can be asked what it shows.
	if err := chromedp.Run(tab); err != nil {
		t.Fatal(err)
	}
	patient, giveUp := context.WithTimeout(tab, 3*time.Minute)
	t.Cleanup(giveUp)
	return patient
}

// do runs actions, which wait for what they need.
func do(t *testing.T, tab window, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(tab, actions...); err != nil {
		// Also when the tab's time is over: it is looked at once more.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tab), 10*time.Second)
		defer cancel()
		var seen string
		if err := chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &seen)); err != nil {
			seen = "(it does not answer: " + err.Error() + ")"
		}
		t.Fatalf("%v; the page says:\n%s", err, seen)
	}
}

// reads waits until an element holds a text.
func reads(selector, text string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		last := "(nothing: it was never read)"
		for {
			// In one question: the page may put a new element there at any time.
			var seen string
			err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector), &seen))
			// A page that is just being left can't be asked: the next one can. Nor can one in
			// whose middle the time is over: it has not become empty by that.
			if err == nil {
				last = seen
			}
			if err == nil && strings.Contains(seen, text) {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s does not come to say %q, it last said %q: %w", selector, text, last, errors.Join(ctx.Err(), err))
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

// press clicks on an element, and looks for it again where the page has put a new one in
// its place meanwhile.
func press(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			err := chromedp.Run(ctx, chromedp.Click(selector, chromedp.ByQuery))
			var gone *cdproto.Error
			if !errors.As(err, &gone) || ctx.Err() != nil {
				return err
			}
		}
	})
}

// pictures writes what a page looks like, light and dark, on a wide screen and on a
// telephone, to results/pages in the repository, and holds the page against its width:
// nothing may stick out.
func pictures(t *testing.T, tab window, name string) {
	t.Helper()
	folder := filepath.Join("..", "results", "pages")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			var picture []byte
			var sticksOut bool
			do(t, tab,
				look(width, scheme),
				chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &sticksOut),
				chromedp.FullScreenshot(&picture, 100),
			)
			if sticksOut {
				t.Errorf("%s at %d: it is wider than the screen", name, width)
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	do(t, tab, look(1280, "light"))
}
