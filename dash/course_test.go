package dash_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/dash"
	"oversell/docs"
	"oversell/lab/course"
	"oversell/lab/rig/rigtest"
)

// TestCourse plays all lessons as a teacher does, with one page in English and one in Chinese. The
// pages take turns: one predicts and presses Run, and both must show the result. The loads are
// small. Each oversell break starts a lab, so a lesson plays only its first one: make course runs all
// of them. COURSE selects lessons by a part of their names, and plays all that is in them. Outside the
// nightly tests, it plays only lesson 0, in which the first prediction is made with the keys, and lesson 1, which has a
// load, requests, steps and an experiment.
func TestCourse(t *testing.T) {
	en, err := course.Lessons(docs.Course, "en")
	if err != nil {
		t.Fatal(err)
	}
	zh, err := course.Lessons(docs.Course, "zh")
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	for i, l := range en {
		if !strings.Contains(l.Name, os.Getenv("COURSE")) || i > 1 && os.Getenv("COURSE") == "" && !rigtest.IsNightly() {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			playLesson(t, pageOf(t, ownLab(t)), l, zh[i])
		})
	}
}

func playLesson(t *testing.T, address func(path string) string, en, zh course.Lesson) {
	t.Helper()
	pages := []window{lessonPage(t, address, en, "en"), lessonPage(t, address, zh, "zh")}
	done, broke := []string{"Done.", "完成。"}, false
	for i, question := range en.Questions() {
		breaks := slices.ContainsFunc(question.Commands, func(c course.Command) bool { return len(c.Args) > 0 && c.Args[0] == "break" })
		if len(question.Commands) == 0 || breaks && broke && os.Getenv("COURSE") == "" {
			continue
		}
		broke = broke || breaks
		box := fmt.Sprintf("#part-question-%d", i)
		teacher := pages[i%2]
		if i == 0 && en.Name == "00-one-minute" {
			do(t, teacher, tabTo("#question-0-1"), keys(" "), tabTo(box+" button.go"), keys(kb.Enter), reads(box+" [role=status]", done[0]))
		}
		if len(question.Options) > 0 {
			do(t, teacher, press(fmt.Sprintf("#question-%d-1", i)))
		}
		// The page of the teacher, who presses Run, scrolls to the result.
		do(t, teacher, screens()[i%3].look("light"), press(box+" button.go"))
		for j, page := range pages {
			do(t, page, reads(box+" [role=status]", done[j]))
			if len(question.Options) > 0 {
				do(t, page, reads(box+" .option.right", "✓"))
			}
		}
		inView(t, teacher, box+" [data-verdict]", "light")
		picture := box + " " + pictureOf(question.Commands[0])
		var wide float64
		do(t, teacher, chromedp.WaitReady(picture, chromedp.ByQuery), chromedp.WaitReady(box+" .printed:not([open]) .output", chromedp.ByQuery),
			chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().width`, picture), &wide))
		if wide < 20 {
			t.Errorf("%s is %.0f pixels wide", picture, wide)
		}
	}
	steady(t, pages[0])
	if en.Name == "01-overselling" { // the explanation has the figures of this run
		var told bool
		do(t, pages[0], chromedp.Evaluate(`(box => box.querySelector('.why').textContent.replace(/\s+/g, ' ').includes('So ' +
			box.querySelector('.output').textContent.match(/^none .* ([\d,]+) *$/m)[1].replace(',', '') + ' updates'))(document.querySelector('#part-question-1'))`, &told))
		if !told {
			t.Error("the explanation has the figures of another run")
		}
	}
	accessible(t, pages[0], axe(t), en.Name+", with results")
	pictures(t, pages[0], "lesson-result")
}

// pictureOf returns the selector of the picture that shows the result of a command.
func pictureOf(c course.Command) string {
	switch {
	case len(c.Args) > 1 && c.Args[0] == "run" && c.Args[1] == "grain":
		return ".shown .sentence-of"
	case len(c.Args) > 0 && c.Args[0] == "run":
		return ".shown .sales rect"
	}
	return ".shown .ladder .rung"
}

// TestExerciseInLesson plays an exercise of a lesson: a ladder shows its statements and replies.
func TestExerciseInLesson(t *testing.T) {
	tab := browser(t)
	do(t, tab, screens()[1].look("light"), chromedp.Navigate(pageOf(t, testLab)("/dash/course/03-row-locks")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		chromedp.WaitVisible(`#part-question-3 .system`, chromedp.ByQuery),
		press(`#question-3-1`), press(`#part-question-3 .go`), reads(`#part-question-3 .shown`, "The class was right"),
		reads(`#part-question-3 .ladder .rung .minor`, "Query OK"), visible(`#part-question-3 .shown`))
	steady(t, tab)
	accessible(t, tab, axe(t), "an exercise in a lesson")
}

func lessonPage(t *testing.T, address func(path string) string, l course.Lesson, lang string) window {
	t.Helper()
	tab := browser(t, lang)
	do(t, tab, chromedp.Navigate(address("/dash/course/"+l.Name)), reads("h1", l.Title))
	return tab
}

// TestLessonKeepsTheChoice chooses an answer, and then the stream begins again and draws the question
// again: Run must still send the answer.
func TestLessonKeepsTheChoice(t *testing.T) {
	page := dash.New(dash.Config{Lab: testLab.Addresses(), Binary: testLab.Config().Binary, QuickLessons: true})
	server := httptest.NewServer(page)
	defer server.Close()
	defer server.CloseClientConnections()
	defer page.Close()
	tab := browser(t)
	var chosen bool
	do(
		t, tab, chromedp.Navigate(server.URL+"/dash/course/01-overselling#token="+token),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), press(`#question-0-2`),
		chromedp.ActionFunc(func(context.Context) error { server.CloseClientConnections(); return nil }),
		chromedp.WaitVisible(`#offline`, chromedp.ByQuery), chromedp.WaitNotVisible(`#offline`, chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector('#question-0-2').checked`, &chosen),
	)
	if !chosen {
		t.Fatal("the choice is lost")
	}
	do(t, tab, press(`#part-question-0 .go`), reads(`#part-question-0 .said`, "4997"))
}

// TestPresent presents a lesson: one part at a time, in large type, without the notes. A student, who has no token,
// does not see the notes at all.
func TestPresent(t *testing.T) {
	tab := browser(t)
	var shown string
	visible := chromedp.Evaluate(`[...document.querySelectorAll('.slide')].filter(s => s.offsetParent).map(s => s.querySelector('h2').textContent).join()`, &shown)
	do(t, tab,
		chromedp.Navigate(address("/dash/course")),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		tabTo(`.lessons a[href="/dash/course/01-overselling"]`), keys(kb.Enter),
		reads("h1", "1. Overselling"),
		press("#present"), reads("#where", "1 /"), visible,
	)
	if shown != "What it is about" {
		t.Errorf("the first part: %q", shown)
	}
	do(t, tab, press("#next"), reads("#where", "2 /"), visible)
	if shown != "Prepare" {
		t.Errorf("the second part: %q", shown)
	}
	do(t, tab, press("#present"), visible)
	if !strings.Contains(shown, "What it is about,Prepare,Ask the class,") || !strings.HasSuffix(shown, "Notes for the teacher") {
		t.Errorf("after the presentation: %q", shown)
	}
	pictures(t, tab, "lesson")
	student, seen := browser(t), ""
	do(t, student, chromedp.Navigate(strings.TrimSuffix(address("/dash/course/01-overselling"), "#token="+token)), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector('main').innerText`, &seen))
	if strings.Contains(seen, "Notes for the teacher") || !strings.Contains(seen, "Ask the class") {
		t.Errorf("without the token, the page shows:\n%s", seen)
	}
}

// TestEarlierAddresses: bookmarks of earlier versions lead to the lessons, and to all strategies.
func TestEarlierAddresses(t *testing.T) {
	for from, to := range map[string]string{
		"first": "/dash/course/00-one-minute", "try": "/dash/course/primitives", "shop": "/dash/course/shop", "learn": "/dash/break?all=on",
	} {
		if status, body := send(t, http.MethodGet, "/dash/"+from, "", nil); status != http.StatusMovedPermanently || !strings.Contains(body, to) {
			t.Errorf("%s: %d %s", from, status, body)
		}
	}
}
