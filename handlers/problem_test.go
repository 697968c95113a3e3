package handlers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

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
		for _, text := range []string{p.Title, p.Detail} {
			if !chinese.MatchString(text) {
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
		if text := english.Title + english.Detail + english.Allowed; chinese.MatchString(text) {
			t.Errorf("%v: %q is not in English", err, text)
		}
		if english.Outcome != p.Outcome || english.Status != p.Status || english.Backend != p.Backend {
			t.Errorf("%v: %+v in English, and %+v in Chinese", err, english, p)
		}
	}
	if p, _ := answered(t, badParameter("qty", "0", oneOf([]string{"1"})), "zh"); p.Detail != `qty="0" 不对，要求：其中之一：1` {
		t.Errorf("the detail is %s", p.Detail)
	}
}
