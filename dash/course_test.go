package dash_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"oversell/docs"
	"oversell/lab/course"
)

// TestCourse plays all lessons as a teacher does: it predicts, presses Run, reads the result, and
// goes on to the next lesson. The loads are small. COURSE selects lessons by a part of their names.
func TestCourse(t *testing.T) {
	for _, lang := range course.Languages() {
		t.Run(lang, func(t *testing.T) {
			lessons, err := course.Lessons(docs.Course, lang)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lessons {
				if strings.Contains(l.Name, os.Getenv("COURSE")) {
					t.Run(l.Name, func(t *testing.T) { playLesson(t, l, lang) })
				}
			}
		})
	}
}

func playLesson(t *testing.T, l course.Lesson, lang string) {
	tab := browser(t, chromedp.Flag("lang", lang), chromedp.Flag("accept-lang", lang))
	do(t, tab, chromedp.Navigate(address("/dash/course/"+l.Name)), reads("h1", l.Title))
	for i, trial := range l.Trials() {
		if len(trial.Commands) == 0 {
			continue
		}
		box := fmt.Sprintf("#part-trial-%d", i)
		if len(trial.Options) > 0 {
			do(t, tab, press(fmt.Sprintf("#trial-%d-1", i)))
		}
		done := map[string]string{"en": "Done.", "zh": "完成。"}[lang]
		do(t, tab, press(box+" button.go"), reads(box+" [role=status]", done))
		if len(trial.Options) > 0 {
			do(t, tab, reads(box+" .option.right", "✓"))
		}
	}
	if slices.Contains([]string{"01-overselling"}, l.Name) {
		pictures(t, tab, "lesson-"+lang)
	}
}
