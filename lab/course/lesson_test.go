package course

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/expr-lang/expr"

	"oversell/api"
	"oversell/docs"
	"oversell/lab/experiment"
	"oversell/lab/measure"
)

const sample = `# 1. Sample

The long tutorial, 1.1. 45 minutes.

## What it is about

Some *text*.

## Try it: two locks

First some text.

Predict: Which one
is safe?
- the first <!-- if run["a"].lost_updates == 0 -->
- the second <!-- if run["a"].lost_updates > 0 -->

` + "```sh" + `
bin/oversell strategies redis   # a comment
curl -s -X PUT 'http://127.0.0.1:8080/stock/1?count=5000'
sleep 0.01 &
wait
` + "```" + `
<!-- answer: 2 -->
<!-- seen -->

` + "```text" + `
old
` + "```" + `

<!-- /seen -->

Why: because <!-- = run["a"].lost_updates -->9<!-- / --> were lost.

More.

## Quiz

1. One?
   - yes <!-- if true -->
   - no <!-- if false -->

   ` + "```sh" + `
   bin/oversell strategies
   ` + "```" + `
2. Two?
   - yes <!-- if false -->
   - no <!-- if true -->

## Notes for the teacher

Notes.
`

func sampleLesson(t *testing.T) Lesson {
	t.Helper()
	all, err := Lessons(fstest.MapFS{
		"course/01-sample.md": {Data: []byte(sample)},
		"course/README.md":    {Data: []byte("no lesson")},
	}, "en")
	if err != nil || len(all) != 1 {
		t.Fatalf("%d lessons, %v", len(all), err)
	}
	return all[0]
}

func TestParse(t *testing.T) {
	t.Parallel()
	l := sampleLesson(t)
	if l.Name != "01-sample" || l.Title != "1. Sample" || l.About != "The long tutorial, 1.1. 45 minutes." {
		t.Errorf("head: %q %q %q", l.Name, l.Title, l.About)
	}
	var kinds []Kind
	for _, p := range l.Parts {
		kinds = append(kinds, p.Kind)
	}
	if !slices.Equal(kinds, []Kind{Plain, Try, Quiz, Notes}) {
		t.Fatalf("kinds: %q", kinds)
	}
	if p := l.Parts[1]; p.Text != "First some text." || len(p.Questions) != 1 {
		t.Errorf("part: %+v", p)
	}
	question := l.Parts[1].Questions[0]
	if question.Ask != "Which one\nis safe?" || question.Answer != 2 || question.Seen != "old" || !strings.HasSuffix(question.Why, "were lost.\n\nMore.") {
		t.Errorf("question: %+v", question)
	}
	if len(question.Options) != 2 || question.Options[1] != (Option{"the second", `run["a"].lost_updates > 0`}) {
		t.Errorf("options: %+v", question.Options)
	}
	if len(question.Commands) != 4 || !slices.Equal(question.Commands[0].Args, []string{"strategies", "redis"}) ||
		question.Commands[0].Text != "bin/oversell strategies redis" || question.Commands[1].Method != http.MethodPut {
		t.Errorf("commands: %+v", question.Commands)
	}
	if quiz := l.Parts[2].Questions; len(quiz) != 2 || quiz[0].Ask != "One?" || len(quiz[0].Commands) != 1 || len(quiz[1].Options) != 2 {
		t.Errorf("quiz: %+v", quiz)
	}
	if got := l.Conditions(); len(got) != 7 {
		t.Errorf("conditions: %q", got)
	}
}

func TestBadCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"rm -rf /": "may only use", "curl http://example.com/": "not supported", "curl -s": "address of the lab is missing",
		"bin/oversell 'run": "invalid",
	} {
		if _, err := ParseCommand(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestRecord records a lesson whose commands only wait.
func TestRecord(t *testing.T) {
	t.Parallel()
	source := "# 1. Sample\n\n## Quiz\n\n1. Two?\n   - yes <!-- if false -->\n   - no <!-- if text == \"\" -->\n\n" +
		"   ```sh\n   sleep 0.01\n   ```\n   <!-- answer: 1 -->\n<!-- seen -->\nold\n<!-- /seen -->\nIt is <!-- = len(answers) -->9<!-- / -->.\n"
	l, err := parse("01-sample", source)
	if err != nil {
		t.Fatal(err)
	}
	refilled := false
	r := Recorder{Runner: Runner{Output: io.Discard}, Refill: func(context.Context) error { refilled = true; return nil }}
	got, err := r.Record(t.Context(), l)
	want := strings.NewReplacer("answer: 1", "answer: 2", "old\n", "\n```text\n\n```\n\n", "-->9<", "-->0<").Replace(source)
	if err != nil || got != want || !refilled {
		t.Errorf("%v, refilled %v:\n%s\nwant\n%s", err, refilled, got, want)
	}
	again, err := parse("01-sample", got)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := r.Record(t.Context(), again); err != nil || twice != got {
		t.Errorf("recorded twice: %v\n%s", err, twice)
	}
	l.source = strings.Replace(source, "len(answers)", `run["b"].sold`, 1)
	if _, err := r.Record(t.Context(), l); err == nil {
		t.Error("a figure of a run that did not happen was written")
	}
}

// TestConditions checks that each condition and each figure of the lessons is an expression over the names of
// results.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, lang := range Languages() {
		lessons, err := Lessons(docs.Course, lang)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lessons {
			for _, expression := range l.Conditions() {
				if _, err := expr.Compile(expression, expr.Env(NewResults().names(Cards{}))); err != nil {
					t.Errorf("%s: %v", File(l.Name, lang), err)
				}
			}
		}
	}
}

func TestRight(t *testing.T) {
	t.Parallel()
	r := NewResults()
	if err := r.addRuns([]byte(`[{"strategy":"a","lost_updates":3,"verdict":"broken","sentence":{"en":"E","zh":"Z"}},{"guard":"g","broken":[{"en":"x","zh":"x"}]}]`)); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	text := `[{"hazard":"pause","strategy":"redis","fenced":true,"seed":1,"verdict":"safe","why":{"en":"w","zh":"z"},"Recording":{"Stock":10}}]`
	if err := os.WriteFile(filepath.Join(folder, "results.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.addExperiments(folder); err != nil {
		t.Fatal(err)
	}
	r.next(Command{URL: &url.URL{}, times: 1})[0].answer = map[string]any{"status": 409.0}
	options := func(conditions ...string) (all []Option) {
		for _, c := range conditions {
			all = append(all, Option{c, c})
		}
		return all
	}
	for _, test := range []struct {
		options []Option
		right   int
		err     string
	}{
		{options(`run["a"].lost_updates == 0`, `run["a"].lost_updates > 0`), 2, ""},
		{options(`verdict["redis"] == "safe"`, `guard["g"].broken == []`), 1, ""},
		{options(`answers[0].status == 409`, `answers[0].status == 200`), 1, ""},
		{options(`card["x"].core`, `true`), 0, "core"},
		{options(`true`, `true`), 0, "two options"},
		{options(`false`), 0, "no option"},
		{options(`rnu["a"]`), 0, "unknown name"},
		{nil, 0, ""},
	} {
		right, err := r.Right(test.options, Cards{})
		if right != test.right || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%v: %d, %v", test.options, right, err)
		}
	}
	answer := r.requests[0]
	for want, results := range map[string]*Results{
		"too little was sold": {Runs: []measure.Result{{Verdict: api.Inconclusive, Sentence: api.Verbatim("too little was sold")}}},
		"lost events":         {Verdicts: []Sentence{{Text: api.Verbatim("lost events"), Experiment: &experiment.Result{Verdict: api.Inconclusive}}}},
		"redis is down":       {requests: []*request{answer, {answer: map[string]any{"outcome": "unavailable", "detail": "redis is down"}}}},
	} {
		if right, err := results.Right(options(`true`), Cards{}); right != 0 || !errors.As(err, &Inconclusive{}) || err.Error() != want {
			t.Errorf("inconclusive: option %d is right, %v, want %q", right, err, want)
		}
	}
	if len(r.Verdicts) != 3 || r.Verdicts[0].EN != "E" || r.Verdicts[1].Class != "broken" || r.Verdicts[2].Class != "holds" || r.Verdicts[2].EN != "redis --fenced, pause: safe. w" {
		t.Errorf("verdicts: %+v", r.Verdicts)
	}
	if len(r.Runs) == 0 || r.Runs[0].LostUpdates != 3 || r.Verdicts[2].Experiment.Recording.Stock != 10 {
		t.Errorf("runs %+v, experiment %+v", r.Runs, r.Verdicts[2].Experiment)
	}
}

// TestHTMLJoinsChineseLines checks that the end of a line gives a blank only beside a word of another script.
func TestHTMLJoinsChineseLines(t *testing.T) {
	for text, want := range map[string]string{
		"新主节点上。\n*红锁*向\n五个 Redis\n加锁": "<p>新主节点上。<em>红锁</em>向五个 Redis\n加锁</p>\n",
		"*看门狗*\n续期。\n“好”。":            "<p><em>看门狗</em>续期。“好”。</p>\n",
		"one\ntwo":                    "<p>one\ntwo</p>\n",
		"- 一\n- 二":                    "<ul>\n<li>一</li>\n<li>二</li>\n</ul>\n",
	} {
		if got, err := HTML(text, func(string) string { return "" }); string(got) != want || err != nil {
			t.Errorf("%q: %q, want %q, %v", text, got, want, err)
		}
	}
}

func TestHTML(t *testing.T) {
	t.Parallel()
	got, err := HTML("See [this](02-next.md), [that](../faults.md) and `x<y`. <!-- = run -->12<!-- / --> <b>", func(l string) string { return "/" + l })
	if err != nil {
		t.Fatal(err)
	}
	want := "<p>See <a href=\"/02-next\">this</a>, that and <code>x&lt;y</code>. 12 <!-- raw HTML omitted --></p>\n"
	if string(got) != want {
		t.Errorf("got  %s want %s", got, want)
	}
}

func TestAdapt(t *testing.T) {
	t.Parallel()
	r := Runner{Target: "http://nginx", Replicas: []string{"http://one"}}
	for in, want := range map[string]string{
		"run none":                       "run none --json - --quiet --target http://nginx",
		"run mutex --replicas 1":         "run mutex --json - --quiet --target http://one",
		"run mutex --replicas 1 --fsync": "run mutex --replicas 1 --fsync --json - --quiet",
		"run mutex --replicas 5":         "run mutex --replicas 5 --json - --quiet",
		"run coupon --guard none":        "run coupon --guard none --json - --quiet",
		"break pause redis":              "break pause redis",
		"step none --solution":           "step none --solution",
		"run redis --delay 1ms --fsync ": "run redis --delay 1ms --fsync --json - --quiet",
	} {
		if got := strings.Join(r.adapt(strings.Fields(in)), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestRange checks that a range in curl's address makes a request of each number, with -Z all at once.
func TestRange(t *testing.T) {
	t.Parallel()
	const want = 3
	var together sync.WaitGroup
	together.Add(want)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/parallel" {
			together.Done()
			together.Wait() // for ever, if the requests came one after the other
		}
		_, _ = fmt.Fprintf(w, `{"n": %q}`, r.FormValue("n"))
	}))
	defer server.Close()
	for _, line := range []string{"curl -Z -w '\\n' 'http://127.0.0.1:8080/parallel?n=[1-3]'", "curl -s 'http://127.0.0.1:8080/?n=[1-3]'"} {
		c, err := ParseCommand(line)
		if err != nil {
			t.Fatal(err)
		}
		results, err := Runner{Target: server.URL, Output: io.Discard}.Run(t.Context(), []Command{c})
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for _, answer := range results.Answers() {
			got = append(got, answer["n"])
		}
		if !slices.Equal(got, []any{"1", "2", "3"}) {
			t.Errorf("%s: answers of %v", line, got)
		}
	}
}
