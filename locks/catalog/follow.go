package catalog

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

type declaration struct {
	file string
	node ast.Node
}

type sourcePackage struct {
	declared map[string][]declaration            // functions, types, constants, variables
	methods  map[string]map[string][]declaration // by type, then by name
}

var scripts = regexp.MustCompile(`(?m)^\t?//go:embed (\S+\.lua)$`)

// follow returns the names of the files that a strategy needs. The file own is the first of these
// files. After it comes each file that declares a name that the strategy uses, in the order of the
// first use. Each Go file is followed by the Lua scripts that it embeds. follow does not check
// types. A method counts as used if its receiver type is used and the used code selects a method of
// this name.
func follow(files fs.FS, own string) (names []string, err error) {
	p, first, err := parse(files, own)
	if err != nil {
		return nil, err
	}
	goFiles := []string{own}
	types, selected, done := map[string]bool{}, map[string]bool{}, map[ast.Node]bool{}
	queue := first
	for len(queue) > 0 {
		d := queue[0]
		queue = queue[1:]
		if done[d.node] {
			continue
		}
		done[d.node] = true
		if !slices.Contains(goFiles, d.file) {
			goFiles = append(goFiles, d.file)
		}
		used(d.node, func(name string) {
			queue = append(queue, p.declared[name]...)
			if p.methods[name] != nil {
				types[name] = true
			}
		}, func(name string) { selected[name] = true })
		for _, name := range slices.Sorted(maps.Keys(types)) {
			for _, method := range slices.Sorted(maps.Keys(p.methods[name])) {
				if selected[method] {
					queue = append(queue, p.methods[name][method]...)
				}
			}
		}
	}
	for _, name := range goFiles {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		for _, script := range scripts.FindAllStringSubmatch(string(text), -1) {
			names = append(names, script[1])
		}
	}
	return names, nil
}

func parse(files fs.FS, own string) (p sourcePackage, first []declaration, err error) {
	p = sourcePackage{map[string][]declaration{}, map[string]map[string][]declaration{}}
	all, err := fs.Glob(files, "*.go")
	if err != nil {
		return p, nil, err
	}
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return p, nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return p, nil, err
		}
		for _, d := range file.Decls {
			p.add(d, name)
			if name == own {
				first = append(first, declaration{name, d})
			}
		}
	}
	if first == nil {
		return p, nil, fmt.Errorf("there is no file %s", own)
	}
	return p, first, nil
}

func (p sourcePackage) add(d ast.Decl, file string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			p.declare(d.Name.Name, declaration{file, d})
			return
		}
		receiver := receiverOf(d)
		if p.methods[receiver] == nil {
			p.methods[receiver] = map[string][]declaration{}
		}
		p.methods[receiver][d.Name.Name] = append(p.methods[receiver][d.Name.Name], declaration{file, d})
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				p.declare(spec.Name.Name, declaration{file, spec})
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					p.declare(name.Name, declaration{file, spec})
				}
			}
		}
	}
}

func (p sourcePackage) declare(name string, d declaration) {
	p.declared[name] = append(p.declared[name], d)
}

func receiverOf(d *ast.FuncDecl) (name string) {
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// used calls name for each name that node uses, and selected for each name after a dot. It leaves
// out the node's own variables and fields, because they hide the names of the package.
func used(node ast.Node, name, selected func(string)) {
	own := variables(node)
	var report func(ast.Node) bool
	report = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			selected(n.Sel.Name)
			ast.Inspect(n.X, report)
			return false
		case *ast.KeyValueExpr:
			ast.Inspect(n.Value, report)
			return false
		case *ast.Ident:
			if !own[n.Name] {
				name(n.Name)
			}
		}
		return true
	}
	ast.Inspect(node, report)
}

func variables(node ast.Node) map[string]bool {
	own := map[string]bool{}
	note := func(names ...ast.Expr) {
		for _, n := range names {
			if id, ok := n.(*ast.Ident); ok {
				own[id.Name] = true
			}
		}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				note(id)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				note(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				note(n.Lhs...)
			}
		case *ast.RangeStmt:
			note(n.Key, n.Value)
		}
		return true
	})
	return own
}
