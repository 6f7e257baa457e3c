package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// inventory is objects, as KIND/NAME, and each one's own identity.
type inventory map[string]string

const identities = `go-template={{range .items}}{{.kind}}/{{.metadata.name}} {{.metadata.uid}}{{"\n"}}{{end}}`

func read(text string) inventory {
	found := inventory{}
	for line := range strings.Lines(text) {
		object, uid, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[object] = uid
	}
	return found
}

// everything is all that a namespace holds, of every kind that the server knows, but for what comes and goes by itself: events, and
// leases. Endpoints are deprecated, and each has slices, which are looked at.
func (p *plane) everything(t *testing.T, namespace string) inventory {
	t.Helper()
	kinds := strings.Fields(p.root.must(t, "", "kubectl", "api-resources", "--namespaced", "--verbs=list", "-o", "name"))
	kinds = slices.DeleteFunc(kinds, func(kind string) bool {
		name, _, _ := strings.Cut(kind, ".")
		return name == "events" || name == "leases" || name == "endpoints"
	})
	if len(kinds) < 20 {
		t.Fatalf("the server knows %q only", kinds)
	}
	return read(p.root.must(t, "", "kubectl", "get", strings.Join(kinds, ","), "-n", namespace, "-o", identities))
}

// without gives what others do not hold, in order.
func (i inventory) without(others inventory) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(i)) {
		if i[name] != others[name] {
			names = append(names, name)
		}
	}
	return names
}
