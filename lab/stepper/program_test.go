package stepper

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
)

// TestProgram: every recorded strategy has a program of four to twelve lines. Each of its steps is known,
// and later lines name no value that another order of the steps changes.
func TestProgram(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	for id, g := range all {
		var code, steps []string
		for _, s := range g.Program(B, nil) {
			steps = append(steps, string(s.Step))
			for _, line := range s.Code {
				code = append(code, strings.TrimSpace(line.EN))
			}
			if strings.Contains(strings.Join(s.Commands, "\n"), "count = 9") {
				t.Errorf("%s, step %q: %q", id, s.Step, s.Commands)
			}
		}
		if len(code) < 4 || len(code) > 12 || code[0] != "buy():" || code[len(code)-1] != `return "sold"` {
			t.Errorf("%s: %q", id, code)
		}
		if i := slices.IndexFunc(code, func(line string) bool { return slices.Contains(steps, line) }); i >= 0 {
			t.Errorf("%s: step %q has no pseudo-code", id, code[i])
		}
	}
	if got, want := outline(all["redis"].Program(A, nil)), "buy():|lock()|count = read()|if count < 1: return \"sold out\"|new = count - 1|write(new)|unlock()|return \"sold\""; got != want {
		t.Errorf("redis: %s, want %s", got, want)
	}
	if got, want := outline(Graph{}.Program(A, []Entry{{Step: "asked"}, {Step: "granted"}})), "buy():|lock()|…"; got != want {
		t.Errorf("without a recording: %s, want %s", got, want)
	}
}

func outline(program []Statement) string {
	var code []string
	for _, s := range program {
		for _, line := range s.Code {
			code = append(code, strings.TrimSpace(line.EN))
		}
	}
	return strings.Join(code, "|")
}

// TestBoard: a client that tries again goes back to the line that it repeats, and a rollback undoes all lines of the
// transaction. A wait moves nothing.
func TestBoard(t *testing.T) {
	t.Parallel()
	program := []Statement{{Step: "asked"}, {Step: "read", Commands: []string{"START TRANSACTION"}}, {Step: "writing"}, {}}
	for want, log := range map[string][]Entry{
		"next later later later": nil,
		"done next later later":  {{Step: "asked"}, {Text: waits()}},
		"done done next later":   {{Step: "asked"}, {Step: "read"}, {Step: "writing"}, {Step: "read", Commands: []string{"GET `a`.`b`"}}},
		"done done done done":    {{Step: "asked"}, {Step: "writing"}, {Text: api.Verbatim("answer: sold")}},
		"done done done next":    {{Step: "asked"}, {Step: "writing"}, {Text: api.Verbatim("answer: the lock was not acquired")}},
		"done next later later ": {{Step: "asked"}, {Step: "read"}, {Step: "writing"}, {Step: "released", Commands: []string{"UPDATE", "ROLLBACK"}}, {Text: retries()}},
	} {
		lines := Board(slices.Clone(program), log)
		var states []string
		for _, l := range lines {
			states = append(states, l.State)
		}
		if got := strings.Join(states, " "); got != strings.TrimSpace(want) {
			t.Errorf("%v: %s, want %s", log, got, want)
		}
		if len(log) == 4 && !slices.Equal(lines[1].Commands, []string{"GET b"}) {
			t.Errorf("the line has the commands %q, want those of the second try", lines[1].Commands)
		}
	}
}
