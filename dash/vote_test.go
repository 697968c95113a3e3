package dash_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"oversell/dash"
)

// TestVote votes from three phones. Until the result, the projector's page shows only how many have voted. The
// result ends the vote, and shows all votes on the projector and on the phones, each with its own choice and score.
// A reload keeps the choice. On the phones, the question and all answers are in view, also in Chinese.
func TestVote(t *testing.T) {
	page, projector := pageOf(t, testLab), browser(t)
	ask := func(question string) chromedp.Action { return press(`#part-question-` + question + ` [name=ask]`) }
	do(t, projector, chromedp.Navigate(page("/")), press(`a[href="/dash/course/00-one-minute"]`), reads(`h1`, "One minute"),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), ask("0"))
	var phones []window
	for i := range 3 {
		phone, legend := browser(t), "No lock."
		if i == 1 {
			phone, legend = browser(t, "zh-CN"), "不加锁"
		}
		do(t, phone, screens()[2].look("light"), chromedp.Navigate(strings.TrimSuffix(page("/dash/vote"), "#token="+token)), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery), reads(`.vote legend`, legend), visible(`.vote`))
		phones = append(phones, phone)
	}
	for i, option := range []string{"#option-1", "#option-1", "#option-2"} {
		do(t, phones[i], press(option), chromedp.WaitReady(option+":checked", chromedp.ByQuery), visible(`.vote`))
	}
	do(t, projector, reads(`.voted`, "3 votes"), chromedp.WaitNotPresent(`.tally`, chromedp.ByQuery))
	do(t, phones[0], press("#option-2"))
	accessible(t, phones[0], axe(t), "a vote")
	pictures(t, phones[0], "vote")
	do(t, phones[0], chromedp.Reload(), chromedp.WaitReady("#option-2:checked", chromedp.ByQuery))
	do(t, projector, press("#question-0-1"), press(`#part-question-0 .go`), reads(`#part-question-0 .said.alarm`, "At least half of the class was wrong."),
		reads(`#part-question-0`, "1 of 3 were right."), reads(`#part-question-0 .tally dd:nth-of-type(1)`, "1"), reads(`#part-question-0 .tally dd:nth-of-type(2)`, "2"))
	do(t, phones[0], reads(`#part-question .choice.own`, "no update is lost"), reads(`#mine`, "You were right in 0 of 1."))
	do(t, phones[1], reads(`#part-question`, "3 人中有 1 人答对"), reads(`#mine`, "你答对了 1 / 1 题"))
	accessible(t, phones[0], axe(t), "a result of a vote")
	pictures(t, phones[0], "voted")
	do(t, projector, ask("1"), chromedp.WaitReady(`#part-question-0 .tally`, chromedp.ByQuery))
	do(t, phones[2], reads(`.vote legend`, "only one replica"), chromedp.WaitNotPresent(`:checked`, chromedp.ByQuery))
	do(t, phones[0], chromedp.Reload(), reads(`#mine`, "You were right in 0 of 1."))
}

// TestThirtyPhones votes from thirty phones at once. Each loads the page again and changes its vote, as after a lost
// connection. A phone counts once, with its last vote, and has a score of its own.
func TestThirtyPhones(t *testing.T) {
	page := dash.New(dash.Config{Lab: testLab.Addresses(), Binary: testLab.Config().Binary, QuickLessons: true})
	defer page.Close()
	class, viewers := httptest.NewServer(page), httptest.NewServer(page.Viewers())
	defer class.Close()
	defer viewers.Close()
	const lesson = "/dash/course/00-one-minute"
	if status, body := send(t, http.MethodPost, class.URL+lesson+"/ask", "question=0", authorized()); status != http.StatusNoContent {
		t.Fatalf("ask: %d %s", status, body)
	}
	cookies := make([]map[string]string, 30)
	var phones sync.WaitGroup
	for i := range cookies {
		cookies[i] = map[string]string{"Cookie": fmt.Sprintf("voter=phone-%d", i)}
		phones.Go(func() {
			for _, option := range []int{2, 1 + i%3/2} { // the last vote of 20 phones is 1, of 10 phones 2
				_, form := send(t, http.MethodGet, viewers.URL+"/dash/vote", "", cookies[i])
				id := regexp.MustCompile(`name="question" value="(\w+)"`).FindStringSubmatch(form)
				if id == nil {
					t.Errorf("no question in %s", form)
					return
				}
				if status, body := send(t, http.MethodPost, viewers.URL+"/dash/vote", fmt.Sprintf("question=%s&option=%d", id[1], option), cookies[i]); status != http.StatusNoContent {
					t.Errorf("vote: %d %s", status, body)
				}
			}
		})
	}
	phones.Wait()
	if _, body := send(t, http.MethodGet, viewers.URL+lesson, "", nil); !strings.Contains(body, "<strong>30</strong> votes") || strings.Contains(body, "<progress") {
		t.Errorf("before the result:\n%s", body)
	}
	if status, body := send(t, http.MethodPost, class.URL+lesson+"/run", "question=0&choice=1", authorized()); status != http.StatusNoContent {
		t.Fatalf("run: %d %s", status, body)
	}
	if !until(t, func() bool {
		_, body := send(t, http.MethodGet, viewers.URL+lesson, "", nil)
		return strings.Contains(body, "20 of 30 were right.") && strings.Contains(body, "The class was right:")
	}) {
		t.Error("the result does not show the votes")
	}
	for i, want := range []string{`{"choice":1,"score":{"right":1,"of":1}}`, `{"choice":1,"score":{"right":1,"of":1}}`, `{"choice":2,"score":{"right":0,"of":1}}`} {
		if _, body := send(t, http.MethodGet, viewers.URL+"/dash/vote/mine", "", cookies[i]); strings.TrimSpace(body) != want {
			t.Errorf("phone %d: %s, want %s", i, body, want)
		}
	}
}

// TestViewers checks that phones may look and vote, and nothing else, even with the token.
func TestViewers(t *testing.T) {
	page := dash.New(dash.Config{Lab: testLab.Addresses(), Share: "http://192.0.2.1:8300/dash/vote"})
	defer page.Close()
	class, phones := httptest.NewServer(page), httptest.NewServer(page.Viewers())
	defer class.Close()
	defer phones.Close()
	if status, body := send(t, http.MethodPost, class.URL+"/dash/course/00-one-minute/ask", "question=0", authorized()); status != http.StatusNoContent {
		t.Fatalf("ask: %d %s", status, body)
	}
	for _, c := range []struct {
		method, path, form string
		status             int
		body               string
	}{
		{"GET", "/dash/vote", "", 200, "What do you predict?"},
		{"GET", "/dash/course/00-one-minute", "", 200, "http://192.0.2.1:8300/dash/vote"},
		{"GET", "/", "", 200, "Which locks oversell?"},
		{"POST", "/dash/run/start", "strategy=none", 403, "look and vote"},
		{"POST", "/dash/course/00-one-minute/run", "question=0&choice=1", 403, "look and vote"},
		{"DELETE", "/dash/vote", "", 405, ""},
		{"POST", "/dash/vote", "question=x&option=1", 400, "allow cookies"},
	} {
		status, body := send(t, c.method, phones.URL+c.path, c.form, authorized())
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
	voter := map[string]string{"Cookie": "voter=one"}
	for form, want := range map[string]int{"question=old&option=1": http.StatusConflict, "": http.StatusConflict} {
		if status, body := send(t, http.MethodPost, "/dash/vote", form, voter); status != want {
			t.Errorf("%q: %d %s", form, status, body)
		}
	}
}
