package stepper

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"

	"oversell/api"
)

// Place is a line of the code that runs. File and Line count from 0.
type Place struct {
	File int `json:"file"`
	Line int `json:"line"`
}

// Places returns for each step the statement that runs after the call of locks.Trace with the step, in which a
// client is paused.
func Places(code []api.File) map[api.Step]Place {
	lines, trees, steps := token.NewFileSet(), make([]*ast.File, len(code)), map[string]api.Step{}
	for i, f := range code {
		trees[i], _ = parser.ParseFile(lines, f.Name, f.Text, parser.SkipObjectResolution) // a script has no calls
		ast.Inspect(trees[i], func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is && len(spec.Values) == 1 {
				if value, is := spec.Values[0].(*ast.BasicLit); is {
					steps[spec.Names[0].Name] = api.Step(strings.Trim(value.Value, `"`))
				}
			}
			return true
		})
	}
	places := map[api.Step]Place{}
	for i, tree := range trees {
		ast.PreorderStack(tree, nil, func(n ast.Node, around []ast.Node) bool {
			step := traced(n, steps)
			if _, known := places[step]; !known && step != "" {
				places[step] = Place{i, lines.Position(after(n, around).Pos()).Line - 1}
			}
			return true
		})
	}
	return places
}

// traced returns the step of a statement that calls locks.Trace, or "". Its constant is in steps, or has the name of
// the step.
func traced(n ast.Node, steps map[string]api.Step) api.Step {
	statement, is := n.(*ast.ExprStmt)
	if !is {
		return ""
	}
	call, is := statement.X.(*ast.CallExpr)
	if !is || len(call.Args) < 2 || last(call.Fun) != "Trace" {
		return ""
	}
	name := last(call.Args[1])
	if step, own := steps[name]; own {
		return step
	}
	return api.Step(strings.ToLower(name))
}

// last returns the last part of a name such as api.Read.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// after returns the statement that runs after n, or n itself at the end of a function. The end of a loop leads to its
// begin.
func after(n ast.Node, around []ast.Node) ast.Node {
	inner := n
	for _, outer := range slices.Backward(around) {
		var list []ast.Stmt
		switch outer := outer.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return n
		case *ast.ForStmt, *ast.RangeStmt:
			return outer
		case *ast.BlockStmt:
			switch inner.(type) {
			case *ast.CaseClause, *ast.CommClause: // the other cases do not run
			default:
				list = outer.List
			}
		case *ast.CaseClause:
			list = outer.Body
		case *ast.CommClause:
			list = outer.Body
		}
		if i := slices.IndexFunc(list, func(s ast.Stmt) bool { return s == inner }); i >= 0 && i+1 < len(list) {
			return list[i+1]
		}
		inner = outer
	}
	return n
}
