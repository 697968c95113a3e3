package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

var servers *rig.Rig

func TestMain(m *testing.M) {
	rigtest.MainWith(m, rig.Config{MySQL: true, Redis: 1, Zookeeper: 1}, func(r *rig.Rig) { servers = r })
}

// TestExercises plays every exercise, and in make nightly also in Chinese. The exercises of one server run one after
// the other, because some use the same names.
func TestExercises(t *testing.T) {
	t.Parallel()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	langs := []string{"en"}
	if rigtest.IsNightly() {
		langs = append(langs, "zh")
	}
	for _, server := range []string{mysqlServer, redisServer, zkServer} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			for _, lang := range langs {
				for _, e := range all {
					if uses(e, server) {
						t.Run(lang+"/"+e.Name, func(t *testing.T) { playInFull(t, e, lang) })
					}
				}
			}
		})
	}
}

func uses(e Exercise, server string) bool {
	return slices.ContainsFunc(e.steps, func(s step) bool { return s.server == server })
}

var han = regexp.MustCompile(`\p{Han}`)

func playInFull(t *testing.T, e Exercise, lang string) {
	var out strings.Builder
	if err := e.Play(t.Context(), servers.Addresses(), &out, lang); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if len(e.clean) == 0 {
		t.Error("the exercise does not clean up")
	}
	for _, s := range e.steps {
		if s.kind == statement && !strings.Contains(out.String(), strings.Split(s.text, "\n")[0]) {
			t.Errorf("%q is not in the transcript", s.text)
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "# ") && han.MatchString(line) != (lang == "zh") {
			t.Errorf("not in the language %s: %s", lang, line)
		}
	}
}

// played plays an exercise that has this text, and returns its transcript.
func played(t *testing.T, text string) (string, error) {
	t.Helper()
	e, err := parse("test", "en: title\nzh: 标题\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = e.Play(t.Context(), servers.Addresses(), &out, "en")
	return out.String(), err
}

const testTable = `
clean mysql> DROP TABLE IF EXISTS unmet
A mysql> CREATE TABLE unmet (id INT PRIMARY KEY) ENGINE = InnoDB
A mysql> INSERT INTO unmet VALUES (1)
`

// TestUnmetExpectations checks that a wrong expectation is an error, of each kind.
func TestUnmetExpectations(t *testing.T) {
	tests := []struct{ text, want string }{
		{"A redis> ECHO one\n  \"two\"", "line 3 of its file: the reply should be\n  \"two\""},
		{"A redis> ECHO one\n  \"on\"", "the reply should be"},
		{"A redis> ECHO one\n  \"one\"\n  \"two\"", "the reply should be"},
		{"A redis> NONSENSE", "the statement failed"},
		{"A redis> ECHO 'one", "the statement failed"},
		{"A redis> EVAL \"return redis.call('nonsense')\" 0\n  (integer) 1", "the reply should be"},
		{testTable + "B mysql> SELECT * FROM unmet FOR UPDATE\n  (waits)", "should wait, but it was answered"},
		{testTable + "A mysql> BEGIN\nA mysql> UPDATE unmet SET id = 2\nB mysql> SELECT * FROM unmet FOR UPDATE\n  (waits)\nB mysql> SELECT 1", "B still waits"},
		{testTable + "A mysql> SELECT * FROM nonsense", "the statement failed"},
		{"A zk> get /nonsense", "the statement failed"},
		{"A zk> nonsense /", "the statement failed"},
		{"clean zk> deleteall /unmet\nA zk> create /unmet 1\nA zk> get -w /unmet\nB zk> set /unmet 2\nA receives\n  (nothing)", "nothing was expected"},
		{"clean zk> deleteall /unmet\nA zk> create /unmet 1\nA zk> get -w /unmet\nB zk> set /unmet 2\nA receives\n  WatchedEvent ... path:/other", "the reply should be"},
	}
	for _, test := range tests {
		out, err := played(t, test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n\nerror %v, want %q; transcript:\n%s", test.text, err, test.want, out)
		}
	}
}

// TestCleanUp checks that a failed or stopped exercise leaves no table, and no open transaction.
func TestCleanUp(t *testing.T) {
	held := testTable + "A mysql> BEGIN\nA mysql> UPDATE unmet SET id = 2\n"
	if _, err := played(t, held+"A redis> NONSENSE"); err == nil {
		t.Error("no error")
	}
	e, err := parse("test", "en: title\nzh: 标题\n"+held+"sleep 10m\n")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := e.Play(ctx, servers.Addresses(), stopAt{"pass)", stop}, "en"); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped exercise: %v", err)
	}
	if out, err := played(t, "A mysql> SHOW TABLES LIKE 'unmet'\n  Empty set"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// stopAt calls stop when a text is written to it.
type stopAt struct {
	text string
	stop context.CancelFunc
}

func (s stopAt) Write(text []byte) (int, error) {
	if strings.Contains(string(text), s.text) {
		s.stop()
	}
	return len(text), nil
}

func TestMissingServers(t *testing.T) {
	for _, server := range []string{mysqlServer, redisServer, zkServer} {
		e, err := parse("test", "en: title\nzh: 标题\nA "+server+"> get /")
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Play(t.Context(), rig.Addresses{}, io.Discard, "en"); err == nil || !strings.Contains(err.Error(), "the lab has no") {
			t.Errorf("%s: %v", server, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, line := range map[string]int{
		"A redis> GET a\n":                                    1, // no title
		"en: title\n\nA redis> GET a\n":                       1, // no Chinese title
		"en: title\nzh: 标题\nAB redis> GET a\n":                3,
		"en: title\nzh: 标题\nA oracle> SELECT 1\n":             3,
		"en: title\nzh: 标题\n\nen: only English\n":             4,
		"en: title\nzh: 标题\n  reply of nothing\n":             3,
		"en: title\nzh: 标题\nsleep long\n":                     3,
		"en: title\nzh: 标题\nA receives\n  (waits)\n":          4,
		"en: title\nzh: 标题\nA redis> GET a\n  (nothing)":      4,
		"en: title\nzh: 标题\nA redis> GET a\n  (waits)\n  1\n": 5,
	} {
		_, err := parse("test", text)
		if err == nil || !strings.Contains(err.Error(), "exercise test") {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if line > 1 && !strings.Contains(err.Error(), fmt.Sprintf("line %d:", line)) {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
}

// TestWindows reads the exercises with the line ends of Windows.
func TestWindows(t *testing.T) {
	for _, name := range names() {
		text, err := files.ReadFile(name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		want, err1 := parse(name, string(text))
		got, err2 := parse(name, strings.ReplaceAll(string(text), "\n", "\r\n"))
		if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the steps differ: %v", name, err)
		}
	}
}

func TestMet(t *testing.T) {
	for _, test := range []struct {
		want, reply string
		met         bool
	}{
		{"", "anything", true},
		{"id count\n1 5", "id   count\n1    5", true},
		{"id count\n1 5", "id   count\n1    50", false},
		{"5", "15", false},
		{"ERROR 1062 ...", "ERROR 1062 (23000): Duplicate", true},
		{"...\ntype: ALL\n...\nkey: NULL\n...", "id: 1\ntype: ALL\nx: 1\nkey: NULL\nrows: 4", true},
		{"...\ntype: ALL\n...", "id: 1\ntype: ref\nrows: 4", false},
		{"(nil)", "nil", false},
	} {
		s := step{}
		if test.want != "" {
			s.want = strings.Split(test.want, "\n")
		}
		if s.met(test.reply) != test.met {
			t.Errorf("%q, %q: met is not %v", test.want, test.reply, test.met)
		}
	}
}

func TestFind(t *testing.T) {
	for _, name := range names() {
		e, err := Find(name)
		if err != nil || e.Name != name || e.Title.EN == "" || e.Title.ZH == "" {
			t.Errorf("%s: %+v, %v", name, e.Title, err)
		}
	}
	if _, err := Find("prayer"); err == nil || !strings.Contains(err.Error(), "choose one of isolation, index") {
		t.Errorf("an unknown exercise: %v", err)
	}
	files, err := files.ReadDir(".")
	if err != nil || len(files) != len(names()) {
		t.Errorf("%d files for %d names: %v", len(files), len(names()), err)
	}
}
