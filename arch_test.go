package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "oversell"

// forbidden lists package names that do not say what the package contains.
var forbidden = []string{"util", "utils", "common", "helper", "helpers", "manager", "model", "models"}

// rule says what a package may import if its path matches from: the packages that match may. Tests
// of this package may also import the packages that match test. All these strings are patterns of
// path.Match, without the module's name.
type rule struct {
	from      string
	may, test []string
}

// rules lists the allowed imports. A package follows the first rule whose from matches its path.
// The path "." means package main. .golangci.yml has the same rules for the linter in an editor.
var rules = []rule{
	{from: ".", may: []string{"cli"}},
	{from: "cli", may: []string{"api", "docs", "stock", "migrations", "locks", "locks/*", "handlers", "lab/*", "lab/*/*", "dash"}},

	// Package api is the contract between the service and the lab.
	{from: "api"},

	// The following packages are the service: handlers imports locks, and locks imports stock.
	// Their tests start real servers with packages of the lab, and run common tests from lockstest.
	{from: "stock", may: []string{"api"}, test: onServers},
	{from: "migrations", test: onServers},
	{from: "locks", may: []string{"api", "stock"}, test: append([]string{"locks/*"}, onServers...)},
	{from: "locks/lockstest", may: []string{"api", "locks", "stock"}, test: append([]string{"locks/*"}, onServers...)},
	{from: "locks/catalog", may: []string{"api", "locks", "stock", "locks/local", "locks/*lock"}, test: append([]string{"locks/lockstest"}, onServers...)},
	{from: "locks/adapter", may: []string{"api", "locks", "stock"}, test: append([]string{"locks/local", "locks/lockstest"}, onServers...)},
	{from: "locks/explore", may: []string{"api", "locks", "stock", "locks/catalog", "locks/*lock"}, test: onServers},
	{from: "locks/*", may: []string{"api", "locks", "stock"}, test: append([]string{"locks/lockstest"}, onServers...)},
	{from: "handlers", may: []string{"api", "locks", "stock"}, test: append([]string{"locks/*", "lab/check", "lab/history", "lab/load"}, onServers...)},

	// The following packages are the lab. They use the service only over HTTP. Of the service's
	// packages, they import only api.
	{from: "nginx"},
	// The tests of package docs compare the documents with the catalogue and the experiments.
	{from: "docs", test: []string{"api", "locks/catalog", "lab/*", "lab/*/*"}},
	{from: "lab/history", may: []string{"api"}},
	// Package lab/experiment may not import the packages that present its results.
	{from: "lab/experiment", may: []string{"api", "lab/backend", "lab/check", "lab/fault", "lab/history", "lab/load", "lab/report", "lab/rig", "lab/suggest"}, test: []string{"lab/rig/*"}},
	{from: "lab/course", may: []string{"api", "lab/*"}, test: []string{"docs", "lab/rig/*"}},
	{from: "lab/*", may: []string{"api", "lab/*", "lab/*/*", "nginx"}},
	{from: "lab/*/*", may: []string{"api", "lab/*", "lab/*/*"}},
	{from: "dash", may: []string{"api", "docs", "dash/hub", "lab/*"}, test: onServers},
	{from: "dash/hub", may: []string{"api"}},
}

var onServers = []string{"migrations", "lab/rig", "lab/rig/*", "lab/backend"}

// pkg describes a Go package, with some of the fields that `go list -json` prints.
type pkg struct {
	ImportPath, Name, Dir              string
	Imports, TestImports, XTestImports []string
	GoFiles, TestGoFiles, XTestGoFiles []string
	CgoFiles, IgnoredGoFiles           []string
}

// local removes the module's name from a path. ok is false for a package of another module.
func local(importPath string) (name string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// wrong returns a sentence for each defect of p: an import that no rule allows, a package without a
// rule, or a forbidden name.
func wrong(p pkg) []string {
	name, ok := local(p.ImportPath)
	if !ok {
		return nil
	}
	var found []string
	if slices.Contains(forbidden, p.Name) || slices.Contains(forbidden, path.Base(name)) {
		found = append(found, fmt.Sprintf("%s: package %s: the name says nothing about what is inside", name, p.Name))
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return matches([]string{r.from}, name) })
	if i < 0 {
		return append(found, name+": no rule matches this package: add one to arch_test.go and .golangci.yml")
	}
	check := func(kind string, imports, allowed []string) {
		for _, to := range imports {
			if to, ok := local(to); ok && to != name && !matches(allowed, to) {
				found = append(found, fmt.Sprintf("%s%s imports %s; it may import %s", name, kind, to, orNothing(allowed)))
			}
		}
	}
	check("", p.Imports, rules[i].may)
	inTests := slices.Concat(rules[i].may, rules[i].test)
	check(" (test)", p.TestImports, inTests)
	check(" (test)", p.XTestImports, inTests)
	return found
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing local"
	}
	return strings.Join(names, ", ")
}

// inits returns the positions of all functions named init in a file's source text.
func inits(file string, src any) ([]string, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	var found []string
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, set.Position(f.Pos()).String()+": func init: it runs without a call, so it cannot be ordered, tested or left out")
		}
	}
	return found, nil
}

func TestImports(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if len(packages) < 5 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	for _, p := range packages {
		for _, w := range wrong(p) {
			t.Error(w)
		}
		for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles, p.CgoFiles, p.IgnoredGoFiles) {
			found, err := inits(filepath.Join(p.Dir, file), nil)
			if err != nil {
				t.Error(err)
			}
			for _, w := range found {
				t.Error(w)
			}
		}
	}
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json", "-tags", "nomsgpack", "./...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []pkg
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// TestForbiddenImports checks that the rules report bad packages and do not report good packages.
func TestForbiddenImports(t *testing.T) {
	t.Parallel()
	tests := []struct {
		why  string
		pkg  pkg
		want string
	}{
		{"stock must not import locks", from("stock", "locks"), "stock imports locks"},
		{"migrations import nothing", from("migrations", "stock"), "migrations imports stock"},
		{"the history imports only api", from("lab/history", "lab/check"), "lab/history imports lab/check"},
		{"locks must not import a family", from("locks", "locks/redislock"), "locks imports locks/redislock"},
		{"families must not import each other", from("locks/redislock", "locks/zklock"), "locks/redislock imports locks/zklock"},
		{"a family must not import the catalogue", from("locks/local", "locks/catalog"), "locks/local imports locks/catalog"},
		{"the suite must not import a family", from("locks/lockstest", "locks/local"), "locks/lockstest imports locks/local"},
		{"only tests import the suite", from("locks/catalog", "locks/lockstest"), "locks/catalog imports locks/lockstest"},
		{"an adapter is no part of the catalogue", from("locks/catalog", "locks/adapter"), "locks/catalog imports locks/adapter"},
		{"an adapter needs no family", from("locks/adapter", "locks/redislock"), "locks/adapter imports locks/redislock"},
		{"handlers must not import a family", from("handlers", "locks/mysqllock"), "handlers imports locks/mysqllock"},
		{"handlers must not import the catalogue", from("handlers", "locks/catalog"), "handlers imports locks/catalog"},
		{"handlers must not import the lab", from("handlers", "lab/rig"), "handlers imports lab/rig"},
		{"the lab must not import locks", from("lab/load", "locks"), "lab/load imports locks"},
		{"the lab must not import the routes", from("lab/rig", "handlers"), "lab/rig imports handlers"},
		{"the lab must not import the stock", from("lab/check", "stock"), "lab/check imports stock"},
		{"the lab's tests must not import the stock", pkg{ImportPath: "oversell/lab/check", Name: "check", XTestImports: []string{"oversell/stock"}}, "lab/check (test) imports stock"},
		{"experiments do not present their results", from("lab/experiment", "lab/matrix"), "lab/experiment imports lab/matrix"},
		{"the page must not import locks", from("dash", "locks"), "dash imports locks"},
		{"the hub knows no page", from("dash/hub", "dash"), "dash/hub imports dash"},
		{"only main imports cli", from("handlers", "cli"), "handlers imports cli"},
		{"main imports only cli", from(".", "handlers"), ". imports handlers"},
		{"a rule for tests", pkg{ImportPath: "oversell/stock", Name: "stock", TestImports: []string{"oversell/locks"}}, "stock (test) imports locks"},
		{"a new package needs a rule", from("cache"), "no rule matches"},
		{"util", pkg{ImportPath: "oversell/locks/util", Name: "util"}, "says nothing"},
		{"a folder named common", pkg{ImportPath: "oversell/lab/common", Name: "shared"}, "says nothing"},
	}
	for _, test := range tests {
		if found := strings.Join(wrong(test.pkg), "\n"); !strings.Contains(found, test.want) {
			t.Errorf("%s: found %q, want %q", test.why, found, test.want)
		}
	}
	for _, p := range []pkg{
		from(".", "cli"),
		from("cli", "stock", "locks/catalog", "lab/rig", "handlers", "migrations"),
		from("locks/catalog", "locks/local", "locks/mysqllock", "locks/zklock", "stock"),
		{ImportPath: "oversell/locks/zklock", Name: "zklock", XTestImports: []string{"oversell/locks/lockstest", "oversell/lab/rig"}},
		{ImportPath: "github.com/other/util", Name: "util", Imports: []string{"oversell/cli"}},
	} {
		if found := wrong(p); len(found) > 0 {
			t.Errorf("%s: %q, want nothing", p.ImportPath, found)
		}
	}

	found, err := inits("made-up.go", "package p\n\ntype t int\n\nfunc (t) init() {}\n\nfunc init() {}\n")
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0], "made-up.go:7:1: func init") {
		t.Errorf("inits = %q, %v, want the one of line 7", found, err)
	}
}

// from returns a made-up package with this name, which imports the packages in to.
func from(name string, to ...string) pkg {
	p := pkg{ImportPath: path.Join(module, name), Name: path.Base(name)}
	for _, i := range to {
		p.Imports = append(p.Imports, path.Join(module, i))
	}
	return p
}

var testName = regexp.MustCompile(`\bTest[A-Z]\w*`)

// uncovered returns a sentence for each call of rigtest.Nightly whose text does not name a test that
// make test runs. The keys of files are paths; a value is the file's source text, or nil to read the file.
func uncovered(files map[string]any) (found []string, err error) {
	type call struct {
		at   token.Position
		args []ast.Expr
	}
	var calls []call
	quick := map[string]bool{}   // tests that make test runs, by name
	nightly := map[string]bool{} // tests that it skips
	set := token.NewFileSet()
	for file, src := range files {
		tree, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			all := nightlyCalls(f.Body, true)
			for _, c := range all {
				calls = append(calls, call{set.Position(c.Pos()), c.Args})
			}
			// A call in a function literal skips a subtest only.
			if f.Recv == nil && testName.MatchString(f.Name.Name) {
				if len(nightlyCalls(f.Body, false)) > 0 {
					nightly[f.Name.Name] = true
				} else {
					quick[f.Name.Name] = true
				}
			}
		}
	}
	for _, c := range calls {
		report := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("%s: rigtest.Nightly: ", c.at)+fmt.Sprintf(format, args...))
		}
		var text *ast.BasicLit
		if len(c.args) == 2 {
			text, _ = c.args[1].(*ast.BasicLit)
		}
		if text == nil {
			report("the second argument must be a string literal that names tests")
			continue
		}
		names := testName.FindAllString(text.Value, -1)
		if len(names) == 0 {
			report("%s names no test: name one that covers the behaviour in make test", text.Value)
		}
		for _, name := range names {
			switch {
			case quick[name]:
			case nightly[name]:
				report("%s itself runs only in make nightly", name)
			default:
				report("%s does not exist", name)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// nightlyCalls returns the calls of rigtest.Nightly in a function's body, with or without those in function literals.
func nightlyCalls(body *ast.BlockStmt, literals bool) (calls []*ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return literals
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || function.Sel.Name != "Nightly" {
			return true
		}
		if from, ok := function.X.(*ast.Ident); ok && from.Name == "rigtest" {
			calls = append(calls, call)
		}
		return true
	})
	return calls
}

// TestNightlyIsCovered checks that each test that only make nightly runs names tests that cover its
// behaviour in make test, and that make test runs these.
func TestNightlyIsCovered(t *testing.T) {
	t.Parallel()
	files := map[string]any{}
	for _, p := range list(t) {
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles, p.IgnoredGoFiles) {
			if strings.HasSuffix(file, "_test.go") {
				files[filepath.Join(p.Dir, file)] = nil
			}
		}
	}
	found, err := uncovered(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestUncovered checks that uncovered reports bad texts and does not report good texts.
func TestUncovered(t *testing.T) {
	t.Parallel()
	const source = `package p

func TestQuick(t *testing.T) { t.Run("large", func(t *testing.T) { rigtest.Nightly(t, "TestQuick") }) }
func TestGood(t *testing.T) { rigtest.Nightly(t, "TestQuick of ./p, with one seed") }
func TestMissing(t *testing.T) { rigtest.Nightly(t, "TestQuick, TestGone") }
func TestCircle(t *testing.T) { rigtest.Nightly(t, "TestGood") }
func TestNothing(t *testing.T) { rigtest.Nightly(t, "the tests of ./p") }
func TestVariable(t *testing.T) { rigtest.Nightly(t, covered) }
func helper(t *testing.T) { rigtest.Nightly(t, "helper") }
`
	found, err := uncovered(map[string]any{"made-up_test.go": source})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`made-up_test.go:5:34: rigtest.Nightly: TestGone does not exist`,
		`made-up_test.go:6:33: rigtest.Nightly: TestGood itself runs only in make nightly`,
		`made-up_test.go:7:34: rigtest.Nightly: "the tests of ./p" names no test: name one that covers the behaviour in make test`,
		`made-up_test.go:8:35: rigtest.Nightly: the second argument must be a string literal that names tests`,
		`made-up_test.go:9:29: rigtest.Nightly: "helper" names no test: name one that covers the behaviour in make test`,
	}
	if !slices.Equal(found, want) {
		t.Errorf("uncovered = %q, want %q", found, want)
	}
}

// TestLineEndings checks that Git checks out every text file with LF on every system: see .gitattributes.
func TestLineEndings(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "--eol").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		if !strings.Contains(line, "eol=lf") && !strings.Contains(line, "attr/-text") || strings.Contains(line, "crlf") {
			t.Error(line)
		}
	}
	if len(lines) < 500 {
		t.Errorf("only %d files", len(lines))
	}
}
