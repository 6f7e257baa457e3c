package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// declarations returns the declarations of a package without its tests.
func declarations(t *testing.T, folder string) (all []ast.Decl) {
	t.Helper()
	files, err := filepath.Glob("../../" + folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file.Decls...)
	}
	return all
}

// TestViewIsSetByOneMethod: only show sets the view of a turn.
func TestViewIsSetByOneMethod(t *testing.T) {
	set := 0
	for _, d := range declarations(t, "engine") {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			assignment, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for _, to := range assignment.Lhs {
				if !selects(to, "shown") {
					continue
				}
				set++
				if f.Name.Name != "show" {
					t.Errorf("%s sets the view: only show may", f.Name.Name)
				}
			}
			return true
		})
	}
	if set == 0 {
		t.Error("no assignment of the view was found")
	}
}

// selects reports whether an expression is a field of the given name, or a part of one.
func selects(e ast.Expr, field string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == field || selects(s.X, field))
}
