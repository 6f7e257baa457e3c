package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The shape that the server and the turn keep.
const (
	mostFields  = 15 // of a struct
	mostMethods = 30 // of proxy.Server
)

// declarations are those of a package's files, without its tests.
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

// TestServerIsSmall: what does not need the whole server is a method of something smaller.
func TestServerIsSmall(t *testing.T) {
	methods := 0
	for _, d := range declarations(t, "proxy") {
		if f, ok := d.(*ast.FuncDecl); ok && receiver(f) == "Server" {
			methods++
		}
	}
	if methods > mostMethods {
		t.Errorf("proxy.Server has %d methods, want at most %d", methods, mostMethods)
	}
}

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

// TestStructsAreSmall: a request's way is not a bag of fields.
func TestStructsAreSmall(t *testing.T) {
	larger := map[string]int{ // they may shrink, not grow
		"admin.condensationRow": 20, "dialect/chat.splitter": 19, "session.Condensation": 22,
		"internal/fakeupstream.Request": 16, "internal/fakeupstream.Options": 16,
	}
	for folder := range house {
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
				if s, ok := spec.Type.(*ast.StructType); ok && s.Fields.NumFields() > max(mostFields, larger[name]) {
					t.Errorf("%s has %d fields, want at most %d", name, s.Fields.NumFields(), mostFields)
				}
				return true
			})
		}
	}
}

// TestViewIsSetByOneMethod: the view of a turn is set by show alone.
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
				if set++; f.Name.Name != "show" {
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

// selects reports whether an expression is a field of this name, or something in it.
func selects(e ast.Expr, field string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == field || selects(s.X, field))
}
