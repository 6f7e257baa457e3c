package source

import (
	"iter"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

type kind int

const (
	kindNull   kind = iota
	kindBroken      // its problem is reported already
	kindString
	kindText // from the environment or a flag: of whatever type the key wants
	kindInteger
	kindFloat
	kindBool
	kindDate
	kindList
	kindTable
)

// String names the kind as an error message would.
func (k kind) String() string {
	return [...]string{
		"nothing", "nothing", "a string", "a string", "a whole number", "a decimal number", "true or false", "a date", "a list", "a section",
	}[k]
}

// node is one value of a configuration file, whatever the file's format; the environment and flags are laid over it.
type node struct {
	kind    kind
	name    string // in the section that it is a field of
	text    string // a scalar's canonical text
	written string // a number or boolean as it stood in the file, when the format keeps it
	origin  string
	items   []*node
	fields  []*node
	key     string // of a tenant that has a file of its own
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

// isEmpty reports whether a list or section is there and holds nothing.
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
	for i := range n.fields {
		if n.fields[i].name == name {
			n.fields[i] = value
			return value
		}
	}
	n.fields = append(n.fields, value)
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

// all yields a node, which stands at a path, and those below it, with their paths, the outer first.
func (n *node) all(path string) iter.Seq2[string, *node] {
	return func(yield func(string, *node) bool) { n.each(path, yield) }
}

func (n *node) each(path string, yield func(string, *node) bool) bool {
	if !yield(path, n) {
		return false
	}
	for i, item := range n.items {
		if !item.each(syntax.Index(path, i), yield) {
			return false
		}
	}
	for _, f := range n.fields {
		if !f.each(syntax.Join(path, f.name), yield) {
			return false
		}
	}
	return true
}

// size counts the nodes below and including n.
func (n *node) size() int {
	total := 1
	for _, below := range slices.Concat(n.items, n.fields) {
		total += below.size()
	}
	return total
}

// prune breaks what is more than levels below n, and reports whether there was anything.
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
