package explore

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	mutations = 14
	// nothing stands in place of the harm that a search finds.
	nothing = "nothing"
)

// mutation is a wrong strategy: a patch of a correct one. The lines before the patch say what the
// search must find, see readMutation.
type mutation struct {
	name, file string
	strategy   string
	bounds     Bounds
	finds      Harm
	because    string   // why the search finds nothing
	changed    []string // files, from the root of the repository
}

// TestMutations checks that the search finds the bug of each patch in testdata/mutations, with a
// schedule that shows it. The correct strategy must not do this harm within the same bounds. Without
// OVERSELL_MUTATIONS, the patches are only applied.
func TestMutations(t *testing.T) {
	missed := 0
	for _, m := range allMutations(t) {
		if m.finds == nothing {
			missed++
		}
		t.Run(m.name, func(t *testing.T) {
			if os.Getenv("OVERSELL_MUTATIONS") == "" {
				m.patched(t) // a changed strategy may need a changed patch
				return
			}
			m.check(t)
		})
	}
	if missed > 1 {
		t.Errorf("%d mutations are not found; one is allowed", missed)
	}
}

// TestCorrect searches the correct strategies, as they are, within the bounds of each mutation: no schedule
// may do its harm. So a change of a strategy that has the effect of a mutation fails here.
func TestCorrect(t *testing.T) {
	for _, m := range allMutations(t) {
		t.Run(m.name, func(t *testing.T) { m.correct(t) })
	}
}

func allMutations(t *testing.T) (all []mutation) {
	t.Helper()
	files, err := filepath.Glob("testdata/mutations/*.patch")
	if err != nil || len(files) != mutations {
		t.Fatalf("%d patches, %v; want %d", len(files), err, mutations)
	}
	for _, file := range files {
		m, err := readMutation(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, m)
	}
	return all
}

// readMutation reads the header of a patch: a sentence, then lines with a key and a value. The bounds
// are the flags of oversell explore.
func readMutation(file string) (m mutation, err error) {
	m.file, m.name = file, strings.TrimSuffix(filepath.Base(file), ".patch")
	f, err := os.Open(file)
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }()
	header, bounds := true, ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if paths, ok := strings.CutPrefix(lines.Text(), "diff --git a/"); ok {
			changed, _, _ := strings.Cut(paths, " ")
			m.changed, header = append(m.changed, changed), false
		}
		key, value, ok := strings.Cut(lines.Text(), ": ")
		if !header || !ok {
			continue
		}
		switch key {
		case "strategy":
			m.strategy = value
		case "bounds":
			bounds = value
		case "finds":
			m.finds = Harm(value)
		case "because":
			m.because = value
		}
	}
	if err := lines.Err(); err != nil {
		return m, err
	}
	known := slices.ContainsFunc(kindsOfHarm(), func(kind kindOfHarm) bool { return kind.Harm == m.finds })
	if !known && m.finds != nothing || m.strategy == "" || bounds == "" || len(m.changed) == 0 ||
		(m.finds == nothing) != (m.because != "") {
		return m, errors.New("the header must have the lines strategy, bounds and finds, and because if it finds nothing")
	}
	m.bounds, err = parseBounds(bounds)
	return m, err
}

func parseBounds(text string) (b Bounds, err error) {
	flags := flag.NewFlagSet("bounds", flag.ContinueOnError)
	flags.IntVar(&b.Clients, "clients", 2, "")
	for _, l := range b.Limits() {
		flags.IntVar(l.N, l.Flag, 0, "")
	}
	flags.BoolVar(&b.Fenced, "fenced", false, "")
	err = flags.Parse(strings.Fields(text))
	return b, err
}

// correct searches the strategy without the patch.
func (m mutation) correct(t *testing.T) (scope Scope, r Result) {
	scope = Scope{Strategy: m.strategy, Bounds: m.bounds}
	r, err := Search(t.Context(), scope, nil)
	if err != nil || !r.Complete || r.Schedules == 0 {
		t.Fatalf("the correct strategy: complete %v, %v", r.Complete, err)
	}
	if count(r, m.finds) > 0 {
		t.Errorf("%d of %d schedules of the correct strategy are %s", count(r, m.finds), r.Schedules, m.finds)
	}
	return scope, r
}

func (m mutation) check(t *testing.T) {
	scope, correct := m.correct(t)
	began := time.Now()
	program := m.build(t)
	built := time.Now()
	wrong := m.search(t, program, scope)
	t.Logf("%s, %s: %d schedules, %d are %q; a trail of %d steps; built in %.0f s, searched in %.1f s", m.strategy, m.bounds, wrong.Schedules,
		count(wrong, wrong.Harm), wrong.Harm, len(wrong.Shortest), built.Sub(began).Seconds(), time.Since(built).Seconds())
	for _, kind := range kindsOfHarm() {
		h, inCorrect, inWrong := kind.Harm, *kind.count(&correct), *kind.count(&wrong)
		switch only := inCorrect == 0 && inWrong > 0; {
		case h == m.finds && !only:
			t.Errorf("%s: %d schedules of the correct strategy, %d of the wrong one; want none, and some", h, inCorrect, inWrong)
		case m.finds == nothing && only:
			t.Errorf("%s: %d schedules; want a bug that is not found", h, inWrong)
		}
	}
	if m.finds != nothing && (wrong.Harm != m.finds || len(wrong.Shortest) == 0) {
		t.Errorf("the schedule of %d steps is %q; want one that is %s", len(wrong.Shortest), wrong.Harm, m.finds)
	}
}

// patched applies the patch to copies of the files only. It returns the file that lets the compiler read
// these in place of the files.
func (m mutation) patched(t *testing.T) (overlay string) {
	dir, root := t.TempDir(), absolute(t, "../..")
	replace := map[string]string{}
	for _, path := range m.changed {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, path)] = write(t, filepath.Join(dir, "copy", path), text)
	}
	// Without the variable, git would look for a repository above the folder, and then skip the files.
	run(t, filepath.Join(dir, "copy"), []string{"GIT_CEILING_DIRECTORIES=" + dir}, "git", "apply", absolute(t, m.file))
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(dir, "overlay.json"), text)
}

// build builds these tests with the patch. See scopeEnv.
func (m mutation) build(t *testing.T) (program string) {
	program = filepath.Join(t.TempDir(), "search")
	run(t, absolute(t, "../.."), nil, "go", "test", "-c", "-overlay", m.patched(t),
		"-tags", "nomsgpack", "-buildvcs=false", "-ldflags=-s -w", "-o", program, "./trial/explore")
	return program
}

func (m mutation) search(t *testing.T, program string, scope Scope) (r Result) {
	text, err := json.Marshal(scope)
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, ".", []string{scopeEnv + "=" + string(text)}, program)
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func absolute(t *testing.T, path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, file string, text []byte) string {
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// run executes a command in a folder, and returns what it writes to stdout.
func run(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

// count returns the number of schedules that do harm of this kind.
func count(r Result, h Harm) (n int) {
	for _, kind := range kindsOfHarm() {
		if kind.Harm == h {
			n = *kind.count(&r)
		}
	}
	return n
}

// does reports whether a schedule does harm of this kind.
func does(o Ending, h Harm) bool {
	return slices.ContainsFunc(kindsOfHarm(), func(kind kindOfHarm) bool { return kind.Harm == h && kind.done(o) })
}
