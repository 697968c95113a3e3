package dash_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// TestPictures takes the screenshots of README.md in the light and the dark style: verdicts of a run, the
// timeline of a broken result, and two clients step by step. make pictures sets OVERSELL_PICTURES to the
// folder for the files.
func TestPictures(t *testing.T) {
	folder := os.Getenv("OVERSELL_PICTURES")
	if folder == "" {
		t.Skip("make pictures takes them")
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	page := ownPage(t)
	for _, picture := range []struct {
		name, path string
		height     int64 // of the window
		actions    chromedp.Tasks
	}{
		{"run", "/", 670, chromedp.Tasks{
			press(`form.plan .go`), reads(`#status`, "Finished."), reads(`#verdicts li:nth-child(3)`, "✓ redis"),
			press(`#verdicts li:nth-child(2) button`), reads(`#of`, "mutex"), chromedp.WaitVisible(`#verdicts text.alarm`, chromedp.ByQuery),
		}},
		{"timeline", "/dash/break/pause/redis", 1070, chromedp.Tasks{
			press(`#result .go`), chromedp.WaitReady(`#result:not([data-run=""])`, chromedp.ByQuery),
			reads(`.verdict`, "redis is broken"), chromedp.WaitVisible(`#film .both`, chromedp.ByQuery),
		}},
		{"step", "/dash/step?strategy=none", 640, chromedp.Tasks{
			beginRound(press(`form button.go`)), chromedp.ActionFunc(loseWithNone),
		}},
	} {
		tab, window := browser(t), screen{1280, picture.height}
		do(t, tab, window.look("light"), chromedp.Navigate(page(picture.path)), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), picture.actions)
		for _, scheme := range []string{"light", "dark"} {
			do(t, tab, window.look(scheme))
			takePicture(t, tab, filepath.Join(folder, picture.name+"-"+scheme+".png"))
		}
	}
}

// takePicture writes what the browser window shows. It waits until the page has stopped moving.
func takePicture(t *testing.T, tab window, path string) {
	t.Helper()
	var shot []byte
	do(
		t, tab,
		// Hide the button that has Chinese letters: without a Chinese font, the letters would be boxes.
		chromedp.Evaluate(`document.activeElement.blur(); scrollTo(0, 0); document.querySelector('.language').style.display = 'none'`, nil),
		chromedp.Evaluate(still, nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }),
		chromedp.CaptureScreenshot(&shot),
	)
	if err := os.WriteFile(path, fewColours(t, shot), 0o644); err != nil {
		t.Fatal(err)
	}
}

// still is a script that waits until nothing on the page has changed or scrolled for half a second.
const still = `new Promise(done => {
	let timer;
	const again = () => { clearTimeout(timer); timer = setTimeout(done, 500, true); };
	new MutationObserver(again).observe(document, { subtree: true, childList: true, attributes: true });
	document.addEventListener('scroll', again, true);
	again();
})`

// fewColours reduces a picture to its 256 most frequent colours, which makes the file two thirds
// smaller.
func fewColours(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.Color]int{}
	area := full.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			seen[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(seen), func(a, b color.Color) int { return seen[b] - seen[a] })
	few := image.NewPaletted(area, colours[:min(256, len(colours))])
	draw.Draw(few, area, full, area.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
