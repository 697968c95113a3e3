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
		why  string
		row  string // of the order
		told string // the outcomes
		want string // in what is broken; empty: it holds
	}{
		{"all is well", `{"paid":true,"balance":500}`, "credited credited_before credited_before", ""},
		{"twice", `{"paid":true,"balance":1000}`, "credited credited", "the balance is 1000"},
		{"twice, and nobody was told", `{"paid":true,"balance":1000}`, "credited credited_before", "the balance is 1000"},
		{"never", `{"paid":true,"balance":0}`, "credited credited_before", "the balance is 0"},
		{"not marked", `{"paid":false,"balance":500}`, "credited credited_before", "paid false"},
		{"two were told", `{"paid":true,"balance":500}`, "credited credited", "2 were told that they credited it"},
		{"nobody was told", `{"paid":true,"balance":500}`, "credited_before", "0 were told that they credited it"},
		{"one did not learn it", `{"paid":true,"balance":500}`, "credited not_acquired", "of 2 requests 1 were told"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, c.row)
		}))
		var told []Answer
		for _, outcome := range strings.Fields(c.told) {
			told = append(told, Answer{Status: http.StatusOK, Outcome: outcome})
		}
		r := newResult("recharge", Guard{ID: "test"})
		err := judgeRecharge(t.Context(), &r, api.Client{Base: server.URL, HTTP: server.Client()}, [][]Answer{nil, told})
		server.Close()
		if broken := strings.Join(r.Broken, "\n"); err != nil || c.want == "" && broken != "" || !strings.Contains(broken, c.want) {
			t.Errorf("%s: broken: %q, %v, want %q", c.why, broken, err, c.want)
		}
		if r.Sentence.EN == "" || r.Sentence.ZH == "" {
			t.Errorf("%s: the sentence is missing: %+v", c.why, r.Sentence)
		}
	}
}
