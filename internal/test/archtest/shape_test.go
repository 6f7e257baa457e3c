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

// TestFormsDoNotChange: no method changes the form or the turn that it is called on, except for those that build a turn.
func TestFormsDoNotChange(t *testing.T) {
	making := map[string]bool{ // called while a turn is recognised, or on a copy that nothing else uses yet
		"resolve": true, "prepareCounting": true, "prepareHidden": true, "obeyCommand": true, "assign": true, "recallItems": true,
		"learnItems": true, "beginKept": true, "readKept": true,
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
		changes := func(e ast.Expr) {
			if _, itself := e.(*ast.Ident); !itself && root(e) == receiver {
				t.Errorf("%s changes its receiver, or hands out a part of it to be changed", f.Name.Name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					changes(to)
				}
				for i, from := range n.Rhs {
					if address, ok := from.(*ast.UnaryExpr); ok && address.Op == token.AND && written(f, n.Lhs[i]) {
						changes(address.X)
					}
				}
			case *ast.IncDecStmt:
				changes(n.X)
			}
			return true
		})
	}
	if methods < 100 {
		t.Errorf("only %d methods were found", methods)
	}
}

// written reports whether a function assigns through a variable.
func written(f *ast.FuncDecl, set ast.Expr) (found bool) {
	variable, ok := set.(*ast.Ident)
	if !ok {
		return false
	}
	names := map[string]bool{variable.Name: true}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if _, itself := to.(*ast.Ident); !itself {
					found = found || names[root(to)]
				}
			}
		case *ast.IncDecStmt:
			if _, itself := n.X.(*ast.Ident); !itself {
				found = found || names[root(n.X)]
			}
		}
		return true
	})
	return found
}

// root returns the name of the variable of which an expression is a part.
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
