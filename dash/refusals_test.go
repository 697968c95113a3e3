package dash_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oversell/dash"
)

// send sends a request as any program can. An address that begins with / is on testLab. form is
// URL-encoded. It returns the status and the body of the answer.
func send(t *testing.T, method, address, form string, header map[string]string) (status int, body string) {
	t.Helper()
	if strings.HasPrefix(address, "/") {
		address = testLab.Addresses().Target + address
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return exchange(t, req)
}

// authorized has the header that starts jobs.
func authorized() map[string]string { return map[string]string{"X-Lab-Token": token} }

// TestWhoMayStart sends each form that needs the token without it, with a wrong one, and as another site
// would send it.
func TestWhoMayStart(t *testing.T) {
	for _, path := range []string{
		"/dash/run/start", "/dash/run/forget", "/dash/stop", "/dash/break/start", "/dash/judge/start", "/dash/course/shop/start",
		"/dash/step/begin", "/dash/step/press", "/dash/step/undo", "/dash/step/end", "/dash/step/guess", "/dash/step/hint",
		"/dash/course/primitives/send", "/dash/course/primitives/clear", "/dash/course/01-overselling/run", "/dash/course/01-overselling/ask",
	} {
		for name, header := range map[string]map[string]string{
			"nobody":        {},
			"a wrong token": {"X-Lab-Token": "guess"},
			"a cookie":      {"Cookie": "X-Lab-Token=" + token},
			"another site":  {"X-Lab-Token": token, "Sec-Fetch-Site": "cross-site"},
			"another host":  {"X-Lab-Token": token, "Origin": "http://elsewhere.example"},
		} {
			if status, body := send(t, http.MethodPost, path, "strategy=none", header); status != http.StatusForbidden {
				t.Errorf("%s by %s: %d %s", path, name, status, body)
			}
		}
		if status, _ := send(t, http.MethodGet, path, "", authorized()); status != http.StatusNotFound { // it is no page
			t.Errorf("GET %s: %d", path, status)
		}
	}
}

// TestRefusals sends forms that start nothing. In each, the first value of a field counts. The answer says
// why, in both languages.
func TestRefusals(t *testing.T) {
	const (
		run    = "/dash/run/start strategy=none&clients=1&loops=1&stock=1&hold=0&wait=0"
		try    = "/dash/course/primitives/send send=read:1&name=class&backend=redis&hold=0&wait=0&permits=3&count=6&members=3"
		lesson = "/dash/course/01-overselling/"
	)
	with := func(request, changes string) string { return strings.Replace(request, " ", " "+changes+"&", 1) }
	unable := dash.New(dash.Config{Lab: testLab.Addresses()})
	defer unable.Close()
	server := httptest.NewServer(unable)
	defer server.Close()
	for _, c := range []struct {
		request string // its path and its form
		status  int
		says    string
	}{
		{strings.Replace(run, "strategy=none&", "", 1), 400, "Choose a strategy"},
		{with(run, "strategy=<b>"), 400, "does not exist"},
		{with(run, "clients=0"), 400, "clients"},
		{with(run, "clients=1000000"), 400, "clients"},
		{with(run, "loops=0.5"), 400, "loops must be a whole number"},
		{with(run, "stock=1000001"), 400, "stock"},
		{with(run, "stock=much"), 400, "stock must be a whole number"},
		{with(run, "hold=-1"), 400, "hold must be"},
		{with(run, "wait=60001"), 400, "wait must be"},
		{with(run, "lease=99"), 400, "lease"},
		{with(run, "lease=long"), 400, "lease must be"},
		{with(run, "replicas=2"), 400, "replicas must be"},

		{"/dash/break/start hazard=flood", 400, `\"flood\" does not exist`},
		{"/dash/break/start hazard=race&strategy=hope", 400, `\"hope\" does not exist`},
		{"/dash/break/start hazard=failover&strategy=none", 400, "does not apply"},
		{"/dash/break/start hazard=race&strategy=none&fenced=true", 400, "does not apply"},
		{"/dash/break/start hazard=race&plan=A+flies&strategy=none", 400, `move 1 of the plan, \"A flies\": there is no \"flies\"; what a client does: sells, resumes`},
		{"/dash/break/start plan=A+sells+at+raed&strategy=none", 400, `no request can stop at \"raed\"; the steps:`},
		{"/dash/break/start plan=A+sells", 400, "Choose one or more strategies for the plan"},
		{server.URL + "/dash/break/start hazard=race", 409, "cannot run experiments"},

		{"/dash/judge/start ", 400, "one line of the shell"},
		{"/dash/judge/start command=true%0Atrue", 400, "one line of the shell"},
		{"/dash/judge/start command=" + strings.Repeat("x", 2001), 400, "at most 2000"},
		{"/dash/judge/start command=true&hazard=flood", 400, "flood"},
		{server.URL + "/dash/judge/start command=true", 409, "cannot run experiments"},

		{"/dash/course/shop/start ", 400, "does not exist"},
		{"/dash/course/shop/start scenario=<b>", 400, "does not exist"},
		{"/dash/course/shop/start scenario=coupon&guard=<b>", 400, "guard"},

		{"/dash/step/begin strategy=nonesuch", 404, "does not exist"},
		{"/dash/step/begin ", 404, "does not exist"},
		{"/dash/step/press who=c", 400, "a or b"},
		{"/dash/step/press who=a", 409, "No round is open"},
		{"/dash/step/guess left=7", 400, "8, 9 or 10"},

		{with(try, "send=nonesuch:1"), 404, "does not exist"},
		{with(try, "send=read:0"), 400, "1 to 10"},
		{with(try, "send=read:11"), 400, "1 to 10"},
		{with(try, "name=a b"), 400, "name must have"},
		{with(try, "backend=mysql"), 400, "redis or zk"},
		{with(try, "hold=60001"), 400, "hold must be"},
		{with(try, "wait=soon"), 400, "wait must be"},
		{with(try, "send=leave:1&backend=zk"), 409, "No member is inside"},

		{lesson + "run ", 400, "question must be"},
		{lesson + "run question=99", 400, "question must be"},
		{lesson + "run question=0", 400, "Predict first"},
		{lesson + "run question=0&choice=9", 400, "choice must be"},
		{lesson + "run question=0&choice=a", 400, "choice must be"},
		{lesson + "ask question=99", 400, "question must be"},
	} {
		address, form, _ := strings.Cut(c.request, " ")
		status, body := send(t, http.MethodPost, address, form, authorized())
		if status != c.status || !strings.Contains(body, c.says) || !strings.Contains(body, "detail_zh") {
			t.Errorf("%s: %d %s, want %d with %s", c.request, status, body, c.status, c.says)
		}
	}
	if status, body := send(t, http.MethodPost, "/dash/step/end", "", authorized()); status != http.StatusNoContent {
		t.Errorf("the end of a round that is not open: %d %s", status, body)
	}
	for path, want := range map[string]int{
		"/dash/results/0.json": 404, "/dash/results/x": 404, "/dash/stream/nothing": 404, "/dash/static/nothing.js": 404,
		"/dash/nothing": 404, "/dash/judge/report": 404, "/dash/course/13-x": 404,
	} {
		if status, body := send(t, http.MethodGet, path, "", nil); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
