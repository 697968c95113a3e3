package catalog

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// sourcePackage has the functions, methods, types, constants and variables of a package.
type sourcePackage struct {
	declared map[types.Object]declaration
	files    map[string][]declaration
	uses     map[*ast.Ident]types.Object
}

type declaration struct {
	file string
	node ast.Node
}

var scripts = regexp.MustCompile(`(?m)^\t?//go:embed (\S+\.lua)$`)

// follow returns the names of the files that a strategy needs. The file own is the first of these
// files. After it comes each file that declares a name that the strategy uses, in the order of the
// first use. Each Go file is followed by the Lua scripts that it embeds. A method that only another
// package calls, through an interface, does not count as used.
func follow(files fs.FS, own string) (names []string, err error) {
	p := parse(files)
	if p.files[own] == nil {
		return nil, fmt.Errorf("there is no file %s", own)
	}
	goFiles, done := []string{}, map[ast.Node]bool{}
	for queue := p.files[own]; len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		if done[d.node] {
			continue
		}
		done[d.node] = true
		if !slices.Contains(goFiles, d.file) {
			goFiles = append(goFiles, d.file)
		}
		ast.Inspect(d.node, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if used, ok := p.declared[p.uses[id]]; ok {
					queue = append(queue, used)
				}
			}
			return true
		})
	}
	for _, name := range goFiles {
		text, _ := fs.ReadFile(files, name) // no error: parse has read it
		names = append(names, name)
		for _, script := range scripts.FindAllStringSubmatch(string(text), -1) {
			names = append(names, script[1])
		}
	}
	return names, nil
}

// parse ignores errors, since the files were compiled with this program.
func parse(files fs.FS) sourcePackage {
	all, _ := fs.Glob(files, "*.go")
	var parsed []*ast.File
	positions, info := token.NewFileSet(), &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, _ := fs.ReadFile(files, name)
		file, _ := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
		parsed = append(parsed, file)
	}
	// The imports are not there, so what comes from them has no type.
	unknown := types.Config{Error: func(error) {}}
	_, _ = unknown.Check("", positions, parsed, info)
	p := sourcePackage{map[types.Object]declaration{}, map[string][]declaration{}, info.Uses}
	for _, file := range parsed {
		for _, d := range file.Decls {
			p.add(d, positions.Position(file.Package).Filename, info.Defs)
		}
	}
	return p
}

func (p sourcePackage) add(d ast.Decl, file string, defines map[*ast.Ident]types.Object) {
	p.files[file] = append(p.files[file], declaration{file, d})
	switch d := d.(type) {
	case *ast.FuncDecl:
		p.declared[defines[d.Name]] = declaration{file, d}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				p.declared[defines[spec.Name]] = declaration{file, spec}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					p.declared[defines[name]] = declaration{file, spec}
				}
			}
		}
	}
}
