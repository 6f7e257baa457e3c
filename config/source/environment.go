package source

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

const (
	envPrefix = "DEWPOINT_"
	envConfig = envPrefix + "CONFIG" // names the file if Input.File is empty

	maxEnvIndex = 255 // of a list element in a variable's name
)

// environment converts the form of os.Environ into a map.
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, pair := range list {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// overlayEnv sets every DEWPOINT_ variable in the tree, and reports those that name no key or a removed one.
func overlayEnv(root *node, env map[string]string, p *problems) {
	for _, variable := range slices.Sorted(maps.Keys(env)) {
		rest, ours := strings.CutPrefix(variable, envPrefix)
		if !ours || variable == envConfig {
			continue
		}
		path := locate(reflect.TypeFor[config.Config](), rest, root)
		switch {
		case removedAt(path) != "":
			p.add(variable, "%s", removedAt(path))
		case path != nil:
			if a, b := alike(root, path); a != "" {
				p.add(variable, "matches both %s and %s: rename one of them, or set the key in the file", a, b)
			}
			put(root, path, node{kind: kindText, text: env[variable], origin: variable})
		case !serviceLink(rest, env[variable]):
			p.add(variable, "names no configuration key: correct its name, or remove it")
		}
	}
}

// overlayFlags sets command line flags in the tree. A flag is the path of a key, or short for one: see Input.Flags.
func overlayFlags(root *node, flags map[string]string, p *problems) {
	spelling := strings.NewReplacer(".", "_", "-", "_")
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		name := flag
		switch name {
		case "upstream":
			name = "upstream.base_url"
		case "admin":
			name = "admin.listen"
		case "store":
			name = "store.path"
		}
		path := locate(reflect.TypeFor[config.Config](), strings.ToUpper(spelling.Replace(name)), root)
		if path == nil {
			p.add("--"+flag, "names no configuration key: correct its name, or remove it")
			continue
		}
		put(root, path, node{kind: kindText, text: flags[flag], origin: "--" + flag})
	}
}

// step is one part of a key's path: a name, or if that is empty, an index.
type step struct {
	name    string
	index   int
	removed string // the message about a removed key, which ends its path; empty: the key exists
}

// removedAt returns the message about the removed key that a path ends at, or "" if the key exists or the path is empty.
func removedAt(path []step) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1].removed
}

// locate finds the key that the rest of a variable's name stands for, in a value of type t. Keys of maps, such as model names, are looked up in
// n, the value in the file. It returns nil if there is no such key.
func locate(t reflect.Type, rest string, n *node) []step {
	switch {
	case syntax.IsScalar(t) || t.Kind() == reflect.Slice && syntax.IsScalar(t.Elem()):
		if rest == "" {
			return []step{}
		}
		return nil
	case t == reflect.TypeFor[config.Holdout]() && rest == "": // its share
		return []step{}
	case t.Kind() == reflect.Pointer:
		return locate(t.Elem(), rest, n)
	}
	for _, c := range candidates(t, rest, n) {
		if path := locate(c.t, c.rest, c.n); path != nil {
			return append([]step{c.step}, path...)
		}
	}
	return nil
}

// candidate is a step that the front of a variable's name may stand for, and what is below it.
type candidate struct {
	step
	t    reflect.Type
	rest string
	n    *node
}

// candidates lists the steps from a value of type t, the preferred one first: in a list an index, in a map the longest name that the file has,
// then the shortest new one, in lower case. In per_model no new name has an underscore, which could stand for several characters of a model
// name: the file must have it. Tenants in a section or in files are found by their names alone.
func candidates(t reflect.Type, rest string, n *node) (all []candidate) {
	named := func(name string, t reflect.Type) {
		if below, ok := cutName(rest, name); ok && name != "" {
			all = append(all, candidate{step{name: name}, t, below, n.get(name)})
		}
	}
	if t.Kind() == reflect.Struct {
		for f := range t.Fields() {
			named(syntax.KeyOf(f), f.Type)
		}
		for _, key := range removedKeys() {
			if _, ok := cutName(rest, key.name); ok && key.section == t {
				all = append(all, candidate{step: step{name: key.name, removed: key.message}, t: reflect.TypeFor[string]()})
			}
		}
		return all
	}
	byName := t.Kind() == reflect.Map || isTenants(t) && n != nil && n.kind == kindTable
	digits, below, _ := strings.Cut(rest, "_")
	if i, err := strconv.Atoi(digits); err == nil && !byName && i >= 0 && i <= maxEnvIndex && digits == strconv.Itoa(i) {
		all = append(all, candidate{step{index: i}, t.Elem(), below, n.at(i)})
	}
	for _, name := range namesOf(n) {
		named(name, t.Elem())
	}
	if t.Kind() == reflect.Map && syntax.IsScalar(t.Elem()) && rest != "" {
		return append(all, candidate{step{name: strings.ToLower(rest)}, t.Elem(), "", nil})
	}
	for i := 1; t.Kind() == reflect.Map && i < len(rest); i++ {
		if rest[i] == '_' {
			all = append(all, candidate{step{name: strings.ToLower(rest[:i])}, t.Elem(), rest[i+1:], nil})
			if t.Elem() == reflect.TypeFor[config.Override]() {
				break
			}
		}
	}
	return all
}

// alike finds two names in the file, on the path to a key, that have the same spelling in a variable's name.
func alike(n *node, path []step) (first, second string) {
	for _, s := range path {
		if s.name == "" {
			n = n.at(s.index)
			continue
		}
		for _, name := range namesOf(n) {
			if name != s.name && envName(name) == envName(s.name) {
				return s.name, name
			}
		}
		n = n.get(s.name)
	}
	return "", ""
}

// namesOf lists the names in a section, longest first.
func namesOf(n *node) (names []string) {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		names = append(names, f.name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}

// cutName removes a key's spelling from the front of a variable's name.
func cutName(rest, key string) (below string, ok bool) {
	below, ok = strings.CutPrefix(rest, envName(key))
	if !ok || below == "" {
		return below, ok
	}
	below, ok = strings.CutPrefix(below, "_")
	return below, ok && below != ""
}

// envName spells a key as in a variable's name: in upper case, with an underscore for every character but letters and digits.
func envName(key string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && syntax.Plain(string(r)) && r != '-' {
			return r
		}
		return '_'
	}, strings.ToUpper(key))
}

// put sets the value at a path, and creates missing sections and lists. If the file has something else there, it does nothing: the file's own
// problem is reported later.
func put(n *node, path []step, value node) {
	if len(path) == 0 {
		value.name = n.name
		*n = value
		return
	}
	s := path[0]
	if n.kind == kindNull {
		n.kind = kindTable
		if s.name == "" {
			n.kind = kindList
		}
	}
	switch {
	case s.name == "" && n.kind == kindList:
		for len(n.items) <= s.index {
			n.items = append(n.items, &node{origin: value.origin})
		}
		put(n.items[s.index], path[1:], value)
	case s.name != "" && n.get(s.name) != nil:
		put(n.get(s.name), path[1:], value)
	case s.name != "" && n.kind == kindTable:
		put(n.set(s.name, &node{origin: value.origin}), path[1:], value)
	}
}

// serviceLink reports whether a variable is one that Kubernetes sets in every container for a service whose name begins with dewpoint, such as
// DEWPOINT_SERVICE_HOST and DEWPOINT_PORT_8080_TCP_ADDR.
func serviceLink(rest, value string) bool {
	rest = "_" + rest
	return linkName.MatchString(rest) || strings.Contains(rest, "_PORT") && linkAddress.MatchString(value)
}

var (
	linkName    = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT|_PORT.*_(?:PROTO|PORT|ADDR)$`)
	linkAddress = regexp.MustCompile(`^(?:tcp|udp|sctp)://`)
)
