package cli_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

const token = "test-token"

// testLab is a lab with all servers. Most tests of this package run one after the other, because they
// set the stock, which deletes all names. The parallel tests run after them: they use a lab of their
// own, or none.
var testLab *rig.Rig

func TestMain(m *testing.M) {
	// The parallel tests mostly wait, so two at a time would be too few on two processors.
	_ = flag.Set("test.parallel", fmt.Sprint(max(3, runtime.GOMAXPROCS(0)))) // of a valid name
	rigtest.MainWith(m, rigtest.Guest(rig.FullLab("", token)), func(r *rig.Rig) { testLab = r })
}

// built returns the path of the program, which testLab has built.
func built() string { return testLab.Config().Binary }

// reply is an answer of the service, with only the fields that the tests read.
type reply struct {
	HTTP    int    `json:"-"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail"`
	Backend string `json:"backend"`
	Count   int    `json:"count"`
}

func send(ctx context.Context, method, base, path string) (reply, error) {
	var r reply
	status, _, err := rigtest.Send(ctx, method, base+path, token, &r)
	r.HTTP = status
	return r, err
}

func ask(t *testing.T, method, base, path string) reply {
	t.Helper()
	r, err := send(t.Context(), method, base, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkLock(strategy string) string {
	return "/check/lock?strategy=" + url.QueryEscape(strategy)
}

// restock sets the stock of product 1, through nginx.
func restock(t *testing.T, count int) {
	t.Helper()
	r := ask(t, http.MethodPut, testLab.Addresses().Target, fmt.Sprintf("/stock/1?count=%d", count))
	if r.HTTP != http.StatusOK || r.Count != count {
		t.Fatalf("reset to %d: %+v", count, r)
	}
}

func left(t *testing.T) int {
	t.Helper()
	return ask(t, http.MethodGet, testLab.Addresses().Target, "/stock/1").Count
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
