package handlers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// TestOutcomesAgree checks that two lists agree: the errors after which no stock was taken, and the
// outcomes after which a client may send the request again.
func TestOutcomesAgree(t *testing.T) {
	for _, o := range outcomes {
		if got, want := o.outcome.TookNothing(), locks.NothingTaken(o.err); got != want {
			t.Errorf("%q is answered as %s: TookNothing is %v, and NothingTaken of the error is %v", o.err, o.outcome, got, want)
		}
	}
}

// TestUnknownMustNotBeRepeated checks that only an answer after which nothing was taken is a 503, after which
// clients repeat. An unknown outcome is a 500.
func TestUnknownMustNotBeRepeated(t *testing.T) {
	if p, _ := answered(t, errors.New("the connection ended during the COMMIT"), "en"); p.Status != http.StatusInternalServerError || p.Outcome != api.Unknown {
		t.Errorf("an error that proves nothing: %d %s", p.Status, p.Outcome)
	}
	for _, o := range outcomes {
		if p, _ := answered(t, o.err, "en"); p.Status == http.StatusServiceUnavailable && !p.Outcome.TookNothing() {
			t.Errorf("%s is a 503, and may have taken stock", p.Outcome)
		}
	}
}

// chinese matches a text in Chinese.
var chinese = regexp.MustCompile(`\p{Han}`)

// answered returns the service's answer to an error, for a client with this Accept-Language.
func answered(t *testing.T, err error, accept string) (api.Problem, http.Header) {
	t.Helper()
	answer := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(answer)
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	c.Request.Header.Set("Accept-Language", accept)
	(&Service{}).problem(c, err)
	var p api.Problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	return p, answer.Header()
}

// TestProblemsInChinese checks that the texts of each problem are in the language of the request.
func TestProblemsInChinese(t *testing.T) {
	problems := []error{
		errors.New("no such outcome"),
		&stock.Unavailable{Backend: "mysql", Err: errors.New("connection refused")},
		badParameter("qty", "0", oneOf([]string{"1", "2"})),
		refuse(http.StatusMethodNotAllowed, api.BadRequest, "no", "不行"),
		refuse(http.StatusRequestTimeout, api.BadRequest, "no", "不行"),
		refuse(http.StatusRequestEntityTooLarge, api.BadRequest, "no", "不行"),
		refuse(http.StatusUnsupportedMediaType, api.BadRequest, "no", "不行"),
	}
	for _, o := range outcomes {
		problems = append(problems, fmt.Errorf("sell: %w", o.err))
	}
	for _, err := range problems {
		p, header := answered(t, err, "zh-CN,zh;q=0.9,en;q=0.8")
		for _, text := range []string{p.Title, p.Detail, p.Hint} {
			if text != "" && !chinese.MatchString(text) {
				t.Errorf("%v: %q is not in Chinese", err, text)
			}
		}
		if p.Allowed != "" && !chinese.MatchString(p.Allowed) {
			t.Errorf("%v: %q is not in Chinese", err, p.Allowed)
		}
		if header.Get("Content-Language") != "zh" || header.Get("Vary") != "Accept-Language" {
			t.Errorf("%v: the header is %v", err, header)
		}
		english, _ := answered(t, err, "")
		if text := english.Title + english.Detail + english.Hint + english.Allowed; chinese.MatchString(text) {
			t.Errorf("%v: %q is not in English", err, text)
		}
		if english.Outcome != p.Outcome || english.Status != p.Status || english.Backend != p.Backend {
			t.Errorf("%v: %+v in English, and %+v in Chinese", err, english, p)
		}
	}
	for _, o := range outcomes {
		if english, _ := answered(t, o.err, ""); english.Detail == "" || english.Hint == "" || o.zh == "" || o.hint.ZH == "" {
			t.Errorf("%v: an answer must say what happened, and what to do: %+v", o.err, english)
		}
		if p, _ := answered(t, o.err, "zh"); p.Detail != o.zh {
			t.Errorf("%v: %q says it twice", o.err, p.Detail)
		}
	}
	if p, _ := answered(t, badParameter("qty", "0", oneOf([]string{"1"})), "zh"); p.Detail != `qty="0" 不对，要求：其中之一：1` {
		t.Errorf("the detail is %s", p.Detail)
	}
}

// TestNotAcquired checks that the answer has the key and the wait, once.
func TestNotAcquired(t *testing.T) {
	ended := locks.NotAcquired(t.Context(), "stock:1", 99_997*time.Microsecond)
	for _, test := range []struct {
		err    error
		en, zh string
	}{
		{ended, "lock stock:1 not acquired within 100ms", "100ms 内没有拿到锁 stock:1"},
		{locks.NotAcquired(t.Context(), "a", 0), "lock a not acquired at once", "没有立即拿到锁 a"},
		{fmt.Errorf("stock:1 needs 2 locks: %w", ended), "stock:1 needs 2 locks: lock stock:1 not acquired within 100ms", "100ms 内没有拿到锁 stock:1（stock:1 needs 2 locks）"},
		{fmt.Errorf("%w: deadlock", ended), "lock stock:1 not acquired within 100ms: deadlock", "100ms 内没有拿到锁 stock:1（deadlock）"},
		{fmt.Errorf("%w: stock:1: gone", locks.ErrNotAcquired), "lock not acquired: stock:1: gone", "没有拿到锁（stock:1: gone）"},
		{fmt.Errorf("%w: %w", stock.ErrSoldOut, ended), "sold out: lock stock:1 not acquired within 100ms", "已售完（lock stock:1 not acquired within 100ms）"},
	} {
		for lang, want := range map[string]string{"en": test.en, "zh": test.zh} {
			if p, _ := answered(t, test.err, lang); p.Detail != want {
				t.Errorf("%s: %q, want %q", lang, p.Detail, want)
			}
		}
	}
}
