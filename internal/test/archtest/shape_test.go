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
	files, err := filepath.Glob("../../../" + folder + "/*.go")
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

// TestFormsDoNotChange: no method changes the form or the turn that it was called on, but for those that make a turn.
func TestFormsDoNotChange(t *testing.T) {
	making := map[string]bool{ // called while a turn is recognised, or on a copy that nothing else uses yet
		"resolve": true, "prepareCounting": true, "prepareHidden": true, "obeyCommand": true, "assign": true, "recallItems": true,
		"learnItems": true,
	}
	methods := 0
	for _, d := range declarations(t, "engine") {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || making[f.Name.Name] {
			continue
		}
		pointer, _ := f.Recv.List[0].Type.(*ast.StarExpr)
		if pointer == nil {
			continue
		}
		if of, _ := pointer.X.(*ast.Ident); of == nil || of.Name != "Form" && of.Name != "Turn" {
			continue
		}
		methods++
		receiver := f.Recv.List[0].Names[0].Name
		ast.Inspect(f, func(n ast.Node) bool {
			if assignment, ok := n.(*ast.AssignStmt); ok {
				for _, to := range assignment.Lhs {
					if s, field := to.(*ast.SelectorExpr); field && root(s) == receiver {
						t.Errorf("%s changes its %s", f.Name.Name, s.Sel.Name)
					}
				}
			}
			return true
		})
	}
	if methods < 100 {
		t.Errorf("only %d methods were found", methods)
	}
}

// root returns the name of the variable that an expression selects from.
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
