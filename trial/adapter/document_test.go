package adapter

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestDocument checks that docs/adapter.md has every field and every word of the protocol, and that
// its session is valid.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/adapter.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	words := []string{doAcquire, doRelease, doVerify, doAdvance, doClear, doCancel, doContinue, queued, lost, step}
	for _, do := range words[:5] {
		words = append(words, answers(do)...)
	}
	for _, s := range []any{Hello{}, Capabilities{}, Break{}, Request{}, Answer{}} {
		for i := range reflect.TypeOf(s).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(s).Field(i).Tag.Get("json"), ",")
			words = append(words, name)
		}
	}
	for _, word := range append(words, backends()...) {
		if !strings.Contains(document, "`"+word+"`") {
			t.Errorf("docs/adapter.md does not describe `%s`", word)
		}
	}
	_, session, _ := strings.Cut(document, "```text\n< ")
	session, _, _ = strings.Cut("< "+session, "```")
	session = strings.ReplaceAll(session, "\n   ", "")
	calls := map[int64]string{}
	for i, line := range strings.Split(strings.TrimSpace(session), "\n") {
		checkLine(t, i, line, calls)
	}
}

// TestPrintable checks that a description of a lock has no character that acts on a terminal.
func TestPrintable(t *testing.T) {
	t.Parallel()
	h, err := decodeHello([]byte(`{"hello":1,"backends":["redis"],"library":"a\u001b[31mb\nc 锁","version":"1\r\u202e","language":"\u009bC","document":"\u0007x"}`))
	if err != nil || h.Library != "a\uFFFD[31mb c 锁" || h.Version != "1\uFFFD" || h.Language != "\uFFFDC" || h.Document != "\uFFFDx" {
		t.Errorf("%+v, %v", h, err)
	}
}

func checkLine(t *testing.T, i int, line string, calls map[int64]string) {
	t.Helper()
	text := []byte(line[2:])
	var r Request
	var a Answer
	var err error
	switch {
	case i == 0:
		_, err = decodeHello(text)
	case regexp.MustCompile("^>").MatchString(line):
		err = decode(text, &r)
		calls[r.ID] = r.Do
	default:
		if err = decode(text, &a); err == nil {
			err = a.check(calls[a.ID])
		}
	}
	if err != nil {
		t.Errorf("line %d of the session: %v", i+1, err)
	}
}
