package source

import "slices"

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
	switch k {
	case kindString, kindText:
		return "a string"
	case kindInteger:
		return "a whole number"
	case kindFloat:
		return "a decimal number"
	case kindBool:
		return "true or false"
	case kindDate:
		return "a date"
	case kindList:
		return "a list"
	case kindTable:
		return "a section"
	default:
		return "nothing"
	}
}

// node is one value of a configuration file, whatever the file's format; the environment and flags are laid over it.
type node struct {
	kind    kind
	text    string // a scalar's canonical text
	written string // a number or boolean as it stood in the file, when the format keeps it
	origin  string
	items   []*node
	fields  []field
	key     string // of a tenant that has a file of its own
}

type field struct {
	name string
	node *node
}

func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name {
			return f.node
		}
	}
	return nil
}

// isEmpty reports whether a list or section is there and holds nothing.
func (n *node) isEmpty() bool {
	return n != nil && (n.kind == kindNull || n.kind == kindList || n.kind == kindTable) && n.size() == 1
}

func (n *node) at(i int) *node {
	if n == nil || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// set replaces or appends a field.
func (n *node) set(name string, value *node) {
	for i := range n.fields {
		if n.fields[i].name == name {
			n.fields[i].node = value
			return
		}
	}
	n.fields = append(n.fields, field{name, value})
}

// take removes a field and returns it.
func (n *node) take(name string) *node {
	found := n.get(name)
	n.fields = slices.DeleteFunc(n.fields, func(f field) bool { return f.name == name })
	return found
}

func (n *node) clone() *node {
	twin := *n
	twin.items = slices.Clone(n.items)
	for i, item := range twin.items {
		twin.items[i] = item.clone()
	}
	twin.fields = slices.Clone(n.fields)
	for i := range twin.fields {
		twin.fields[i].node = twin.fields[i].node.clone()
	}
	return &twin
}

// size counts the nodes below and including n.
func (n *node) size() int {
	total := 1
	for _, item := range n.items {
		total += item.size()
	}
	for _, f := range n.fields {
		total += f.node.size()
	}
	return total
}

// prune breaks what is more than levels below n, and reports whether there was anything.
func (n *node) prune(levels int) (pruned bool) {
	if levels < 0 {
		*n = node{kind: kindBroken, origin: n.origin}
		return true
	}
	for _, item := range n.items {
		pruned = item.prune(levels-1) || pruned
	}
	for _, f := range n.fields {
		pruned = f.node.prune(levels-1) || pruned
	}
	return pruned
}
