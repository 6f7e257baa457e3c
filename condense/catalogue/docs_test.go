package catalogue

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the parts of docs/condensers.md that the catalogue determines")

// TestDocumentationAgreesWithTheCatalogue compares the parts of docs/condensers.md between two comments.
func TestDocumentationAgreesWithTheCatalogue(t *testing.T) {
	const file = "../../docs/condensers.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{"types": typesTable(), "keys": keysTable(), "thresholds": thresholds()} {
		begin, end := "<!-- "+name+": make condenser-docs -->\n", "<!-- end of "+name+" -->\n"
		before, rest, begun := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, end)
		if !begun || !ended {
			t.Fatalf("%s has no part between %q and %q", file, begin, end)
		}
		want = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s differs from the catalogue: run 'make condenser-docs'", file)
	}
}

// typesTable lists the types: those that call a model, other rolling ones, the rest.
func typesTable() string {
	rank := func(e Entry) int {
		switch {
		case e.AsksModel():
			return 0
		case e.Rolling():
			return 1
		}
		return 2
	}
	var b strings.Builder
	b.WriteString("| type (alias) | what it does |\n|---|---|\n")
	for _, e := range slices.SortedStableFunc(slices.Values(Entries()), func(a, b Entry) int { return cmp.Compare(rank(a), rank(b)) }) {
		name := code(e.Type)
		if e.Alias != "" {
			name += " (" + code(e.Alias) + ")"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, e.Doc)
	}
	return b.String()
}

func keysTable() string {
	var b strings.Builder
	b.WriteString("| key | default | types | meaning |\n|---|---|---|---|\n")
	for _, k := range Keys() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(k.Name), defaultOf(k), typesWith(k.Name), k.Doc)
	}
	return b.String()
}

// thresholds is the sentence that lists the keys of an override.
func thresholds() string {
	var names []string
	for f := range reflect.TypeFor[Override]().Fields() {
		names = append(names, code(keyOf(f)))
	}
	last := len(names) - 1
	return "An entry may set " + strings.Join(names[:last], ", ") + " and " + names[last] + ", if the type has them.\n"
}

// defaultOf shows the default of a key, and of which types it is another one.
func defaultOf(k Key) string {
	shown := k.Shown
	if k.Default != nil {
		shown = value(k.Default)
	}
	for _, e := range Entries() {
		if own, ok := e.Defaults[k.Name]; ok {
			shown += "; " + code(e.Type) + ": " + value(own)
		}
	}
	return shown
}

// value shows text and durations as code.
func value(v any) string {
	switch v.(type) {
	case int, float64:
		return fmt.Sprint(v)
	}
	return code(fmt.Sprint(v))
}

// typesWith names the types that have a key. Model and rolling types are named together.
func typesWith(key string) string {
	with := map[string]bool{}
	var without []string
	for _, e := range Entries() {
		if with[e.Type] = e.Has(key); !with[e.Type] {
			without = append(without, code(e.Type))
		}
	}
	if len(without) <= 2 {
		return "all but " + strings.Join(without, " and ")
	}
	var parts []string
	group := func(name string, in func(Entry) bool) {
		members := slices.DeleteFunc(Entries(), func(e Entry) bool { return !in(e) })
		if !slices.ContainsFunc(members, func(e Entry) bool { return !with[e.Type] }) {
			parts = append(parts, name)
			for _, e := range members {
				delete(with, e.Type)
			}
		}
	}
	group("rolling", Entry.Rolling)
	if len(parts) == 0 {
		group("model", Entry.AsksModel)
	}
	for _, e := range Entries() {
		if with[e.Type] {
			parts = append(parts, code(e.Type))
		}
	}
	return strings.Join(parts, ", ")
}

func code(text string) string { return "`" + text + "`" }
