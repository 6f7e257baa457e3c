package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxFields  = 15 // of a struct
	maxMethods = 30 // of proxy.Server
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

// TestServerIsSmall: code that does not need the whole server belongs to a smaller type.
func TestServerIsSmall(t *testing.T) {
	methods := 0
	for _, d := range declarations(t, "proxy") {
		if f, ok := d.(*ast.FuncDecl); ok && receiver(f) == "Server" {
			methods++
		}
	}
	if methods > maxMethods {
		t.Errorf("proxy.Server has %d methods, want at most %d", methods, maxMethods)
	}
}

// receiver returns the name of a method's receiver type, or an empty string for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// TestStructsAreSmall: data is passed as arguments, not collected in large structs.
func TestStructsAreSmall(t *testing.T) {
	exceptions := map[string]int{ // may shrink, not grow
		"admin.condensationRow": 20, "dialect/chat.splitter": 19, "session.Condensation": 22,
		"internal/fakeupstream.Request": 16, "internal/fakeupstream.Options": 16,
	}
	for folder := range allowedImports {
		if folder == "config" { // settings have many
			continue
		}
		for _, d := range declarations(t, folder) {
			ast.Inspect(d, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				name := folder + "." + spec.Name.Name
				s, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				if n := s.Fields.NumFields(); n > max(maxFields, exceptions[name]) {
					t.Errorf("%s has %d fields, want at most %d", name, n, max(maxFields, exceptions[name]))
				}
				return true
			})
		}
	}
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
