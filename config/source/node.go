package source

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

type kind int

const (
	kindNull   kind = iota
	kindBroken      // its problem was reported
	kindString
	kindText // from the environment or a flag: of the type that its key has
	kindInteger
	kindFloat
	kindBool
	kindDate
	kindList
	kindTable
)

// String returns the kind as error messages name it.
func (k kind) String() string {
	return [...]string{
		"nothing", "nothing", "a string", "a string", "a whole number", "a decimal number", "true or false", "a date", "a list", "a section",
	}[k]
}

// node is a value in a configuration file of any format. Values from the environment and flags are added to the tree.
type node struct {
	kind    kind
	name    string // if it is a field of a section
	text    string // the canonical text of a scalar
	written string // a number or boolean as written in the file, if the parser keeps that
	origin  string
	items   []*node // of a list
	fields  []*node // of a section
	key     string  // of a tenant that has its own file

	confined bool // as config.Tenant.Confined
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// isEmpty reports whether n exists and is null, or a list or section without elements.
func (n *node) isEmpty() bool {
	return n != nil && (n.kind == kindNull || n.kind == kindList || n.kind == kindTable) && len(n.items)+len(n.fields) == 0
}

func (n *node) at(i int) *node {
	if n == nil || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// set replaces or appends a field, and returns it.
func (n *node) set(name string, value *node) *node {
	value.name = name
	if i := slices.IndexFunc(n.fields, func(f *node) bool { return f.name == name }); i >= 0 {
		n.fields[i] = value
	} else {
		n.fields = append(n.fields, value)
	}
	return value
}

// take removes a field and returns it.
func (n *node) take(name string) *node {
	found := n.get(name)
	n.fields = slices.DeleteFunc(n.fields, func(f *node) bool { return f == found })
	return found
}

func (n *node) clone() *node {
	twin := *n
	twin.items, twin.fields = clones(n.items), clones(n.fields)
	return &twin
}

func clones(nodes []*node) []*node {
	twins := slices.Clone(nodes)
	for i := range twins {
		twins[i] = twins[i].clone()
	}
	return twins
}

// each calls visit with n, whose path is given, and then with the nodes below it and their paths.
func (n *node) each(path string, visit func(path string, n *node)) {
	visit(path, n)
	for i, item := range n.items {
		item.each(syntax.Index(path, i), visit)
	}
	for _, f := range n.fields {
		f.each(syntax.Join(path, f.name), visit)
	}
}

// prune marks nodes more than levels below n as broken, and reports whether there were any.
func (n *node) prune(levels int) (pruned bool) {
	if levels < 0 {
		*n = node{kind: kindBroken, name: n.name, origin: n.origin}
		return true
	}
	for _, below := range slices.Concat(n.items, n.fields) {
		pruned = below.prune(levels-1) || pruned
	}
	return pruned
}
