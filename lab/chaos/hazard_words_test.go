package chaos_test

import (
	"strings"
	"testing"

	"oversell/lab/chaos"
)

// TestWords reads plans with each word of the language, and writes them in the same words.
func TestWords(t *testing.T) {
	for _, text := range []string{
		"A sells working 2 leases at read, B sells for 0.5 s, B ends, A resumes, A ends",
		"A sells a then b at part, D sells b then a, A resumes",
		"A sells at granted, 3.5 leases pass if renewed, A dies, B sells briefly, B ends, A starts",
		"A sells try at asked, A is cut off from servers 3-5, B is cut off, A resumes at writing, A reconnects, B reconnects",
		"replication stops, writing behind stops, A is refused by servers 4-5, A is served, redis fails over, redis fails back",
		"a minority dies, a majority dies, all clocks jump, clocks agree, A loses power, B is restarted, B loses its session, A loses a renewal",
		"A reads, B sells at read, B stops, a lease passes, server 2 jumps, A holds row 2, A delivers row, A holds 1, A delivers, A loses 1",
		"for each n from 2, A sells at asked, A holds n, A loses n+1, 1 lease passes, A renews, B runs ahead",
		"for each n, A holds n",
		"A stays with the old master, A joins the new master, all Sentinels die but 2, the Sentinels start, the slot moves to stage 3, B sells again",
	} {
		p, err := chaos.Parse(text)
		if err != nil || p.String() != text {
			t.Errorf("%s: %s, %v", text, p, err)
		}
		for _, m := range p {
			if en, zh := m.Words().EN, m.Words().ZH; en == "" || zh == "" || zh == en || strings.Contains(en+zh, "%!") || strings.Contains(en+zh, "%.0") {
				t.Errorf("%s: %q, %q", m, en, zh)
			}
		}
	}
	for text, want := range map[string]string{
		"A sels at read":                    `did you mean "sells"?`,
		"A thows":                           `did you mean "thaws"?`,
		"A holds n":                         "n is a number only after",
		"A sells, for each n":               "it must be the first move",
		"A flies":                           "what a client does: sells, resumes",
		"E sells":                           "the clients are A, B and C",
		"server 1 dies":                     "what a server does: crashes, restarts, stalls, jumps",
		"redis dies":                        `did you mean "redis fails over"?`,
		"A sells quickly":                   "after sells may come: try, again, nested, briefly",
		"A sells for ever now":              `"ever" must be`,
		"A sells for 2 minutes":             `"minutes" must be s or leases`,
		"A is cut off from servers 5-3":     "numbers of servers, such as 1-3",
		"D freezes":                         "D shares the process of A",
		"A holds two":                       `"two" must be the number of a command`,
		"A resumes working 2 leases":        "after resumes may come: at STEP",
		"A sells,, B sells":                 "it is empty",
		"1000 leases pass":                  "not above 100",
		"A sells at read, B thaws the lock": "after thaws may come: nothing",
		"server x crashes":                  "must be the number of a server",
		"A sells at":                        "after sells may come",
	} {
		if _, err := chaos.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
