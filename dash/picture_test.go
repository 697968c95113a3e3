package dash_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPicture takes screenshots for the documents: the page during a run, in the light and the dark
// style. make picture sets OVERSELL_PICTURE to the folder for the files.
func TestPicture(t *testing.T) {
	folder := os.Getenv("OVERSELL_PICTURE")
	if folder == "" {
		t.Skip("make picture takes it")
	}
	tab := browser(t)
	const drawn = `document.querySelector('#stock .line.left')?.getAttribute('points').split(' ').length > 60 &&
		document.querySelector('#stock text.alarm') != null`
	do(
		t, tab,
		chromedp.Navigate(address("/")),
		choose("mutex"),
		// Each request holds the lock for 10 ms, so that the run lasts long enough for a
		// screenshot.
		load("hold", "10"),
		press(`button.go`),
		chromedp.Poll(drawn, nil, chromedp.WithPollingTimeout(0)),
	)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		var picture []byte
		do(
			t, tab,
			look(1280, scheme),
			chromedp.Evaluate(`scrollTo(0, 0)`, nil),
			// Hide the button that has Chinese letters: without a Chinese font, the letters would
			// be boxes.
			chromedp.Evaluate(`document.querySelector('.language').style.visibility = 'hidden'`, nil),
			chromedp.CaptureScreenshot(&picture),
		)
		small := fewColours(t, picture)
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("page-%s.png", scheme)), small, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	do(t, tab, press(`button[data-post="/dash/stop"]`))
}

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
