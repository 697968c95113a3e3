package scenario

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oversell/api"
)

func TestJudgeRecharge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why      string
		account  string // as JSON
		outcomes string
		want     string // part of Broken; empty if the invariant holds
	}{
		{"correct", `{"paid":true,"balance":500}`, "credited credited_before credited_before", ""},
		{"credited twice", `{"paid":true,"balance":1000}`, "credited credited", "the balance is 1000"},
		{"credited twice, answered once", `{"paid":true,"balance":1000}`, "credited credited_before", "the balance is 1000"},
		{"not credited", `{"paid":true,"balance":0}`, "credited credited_before", "the balance is 0"},
		{"not marked as paid", `{"paid":false,"balance":500}`, "credited credited_before", "paid false"},
		{"answered twice, credited once", `{"paid":true,"balance":500}`, "credited credited", `2 were answered "credited"`},
		{"never answered, credited once", `{"paid":true,"balance":500}`, "credited_before", `0 were answered "credited"`},
		{"an answer without the credit", `{"paid":true,"balance":500}`, "credited not_acquired", `2 requests, of which 1 were answered "credited" and 0`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, c.account)
		}))
		var answers []Answer
		for _, outcome := range strings.Fields(c.outcomes) {
			answers = append(answers, Answer{Status: http.StatusOK, Outcome: outcome})
		}
		r := newResult("recharge", Guard{ID: "test"})
		err := judgeRecharge(t.Context(), &r, api.Client{Base: server.URL, HTTP: server.Client()}, [][]Answer{nil, answers})
		server.Close()
		if broken := r.Violations(); err != nil || c.want == "" && broken != "" || !strings.Contains(broken, c.want) {
			t.Errorf("%s: broken: %q, %v, want %q", c.why, broken, err, c.want)
		}
		if r.Sentence.EN == "" || r.Sentence.ZH == "" {
			t.Errorf("%s: the sentence is missing: %+v", c.why, r.Sentence)
		}
	}
}
