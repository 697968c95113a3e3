package dash_test

import (
	"context"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// look sets the width of the browser window, and chooses the light or the dark style.
func look(width int64, scheme string) chromedp.Action {
	return chromedp.Tasks{
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.EmulateViewport(width, 900),
		chromedp.ActionFunc(func(ctx context.Context) error {
			// Wait for two frames: then the browser has drawn the page with the new width.
			return chromedp.Run(ctx, chromedp.Evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, nil,
				func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		}),
	}
}
