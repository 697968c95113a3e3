package dash_test

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// screen is the size of a browser window.
type screen struct{ Width, Height int64 }

// screens are a projector, a small projector and a telephone.
func screens() []screen { return []screen{{1920, 1080}, {1280, 800}, {390, 844}} }

func (s screen) String() string { return fmt.Sprintf("%d x %d", s.Width, s.Height) }

// look gives the browser window a width, and chooses the light or the dark style.
func look(width int64, scheme string) chromedp.Action { return screen{width, 900}.look(scheme) }

// look gives the browser window this size, and chooses the light or the dark style.
func (s screen) look(scheme string) chromedp.Action {
	return chromedp.Tasks{
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.EmulateViewport(s.Width, s.Height),
		chromedp.ActionFunc(func(ctx context.Context) error {
			// Wait for two frames: then the browser has drawn the page with the new size.
			return chromedp.Run(ctx, chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, nil,
				func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		}),
	}
}
