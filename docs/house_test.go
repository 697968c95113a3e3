package docs_test

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

// forbidden lists package names that do not say what the package contains.
var forbidden = []string{"util", "utils", "common", "helper", "helpers", "manager", "model", "models"}

// importRule says what the packages whose path matches from may import. All strings are patterns of path.Match,
// without the module's name; "everything" and "nothing" mean what they say.
type importRule struct {
	from string
	may  []string
}

// importRules reads the block of docs/design.md that says what each package may import.
func importRules(design string) (rules []importRule) {
	_, block, _ := strings.Cut(design, "```imports\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		if from, may, ok := strings.Cut(line, "->"); ok {
			for name := range strings.FieldsSeq(from) {
				rules = append(rules, importRule{name, strings.Fields(may)})
			}
		}
	}
	return rules
}

// pkg describes a Go package, with some of the fields that `go list -json` prints.
type pkg struct {
	ImportPath, Name, Dir              string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	IgnoredGoFiles                     []string
}

// local removes the module's name from a path. ok is false for a package of another module.
func local(importPath string) (name string, ok bool) {
	if importPath == "oversell" {
		return "main", true
	}
	return strings.CutPrefix(importPath, "oversell/")
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return p == "everything" || ok && err == nil
	})
}

// wrong returns a sentence for each defect of p: an import that no rule allows, a package without a
// rule, or a forbidden name. A package follows the first rule that matches it. Tests may also start real
// servers, and those of the service may use its other packages.
func wrong(rules []importRule, p pkg) (found []string) {
	name, ok := local(p.ImportPath)
	if !ok {
		return nil
	}
	if slices.Contains(forbidden, p.Name) || slices.Contains(forbidden, path.Base(name)) {
		found = append(found, fmt.Sprintf("%s: package %s: the name says nothing about what is inside", name, p.Name))
	}
	i := slices.IndexFunc(rules, func(r importRule) bool { return matches([]string{r.from}, name) })
	if i < 0 {
		return append(found, name+": no rule in docs/design.md matches this package")
	}
	check := func(kind string, imports, allowed []string) {
		for _, to := range imports {
			if to, ok := local(to); ok && to != name && !matches(allowed, to) {
				found = append(found, fmt.Sprintf("%s%s imports %s; it may import %s", name, kind, to, strings.Join(allowed, ", ")))
			}
		}
	}
	check("", p.Imports, rules[i].may)
	inTests := append([]string{"docs", "migrations", "lab/*", "lab/*/*", "trial/*"}, rules[i].may...)
	if !strings.HasPrefix(name, "lab/") && !strings.HasPrefix(name, "dash") {
		inTests = append(inTests, "api", "stock", "locks", "locks/*")
	}
	check(" (test)", slices.Concat(p.TestImports, p.XTestImports), inTests)
	return found
}

// TestImports checks that imports go in the one direction that docs/design.md says.
func TestImports(t *testing.T) {
	t.Parallel()
	rules, packages := importRules(read(t, "docs/design.md")), list(t)
	if len(packages) < 30 || len(rules) < 10 {
		t.Fatalf("%d packages, %d rules", len(packages), len(rules))
	}
	for _, p := range packages {
		for _, w := range wrong(rules, p) {
			t.Error(w)
		}
	}
	for _, bad := range []struct{ from, to, want string }{
		{"locks/redislock", "locks/zklock", "locks/redislock imports locks/zklock"},
		{"handlers", "locks/catalog", "handlers imports locks/catalog"},
		{"lab/check", "stock", "lab/check imports stock"},
		{"dash", "locks", "dash imports locks"},
		{"handlers", "cli", "handlers imports cli"},
		{"cache", "api", "no rule"},
		{"locks/util", "api", "says nothing"},
	} {
		p := pkg{ImportPath: "oversell/" + bad.from, Name: path.Base(bad.from), Imports: []string{"oversell/" + bad.to}}
		if found := strings.Join(wrong(rules, p), "\n"); !strings.Contains(found, bad.want) {
			t.Errorf("%s imports %s: found %q, want %q", bad.from, bad.to, found, bad.want)
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
