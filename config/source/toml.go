package source

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML parses a TOML document. Unmarshal refuses keys and tables that are given twice, so the builder works on a valid document.
func (d document) parseTOML(text []byte) *node {
	if err := toml.Unmarshal(text, &map[string]any{}); err != nil {
		line := 0
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ = at.Position()
		}
		d.refuse(line, "", "is not TOML: check quotes, brackets, and that no key or section is given twice")
		return nil
	}
	b := tomlBuilder{document: d, text: text, line: 1, left: maxNodes}
	b.parser.Reset(text)
	root := b.root()
	if b.left < 0 {
		d.refuse(0, "", "contains more than %d values: shorten it", maxNodes)
		return nil
	}
	if root.prune(maxDepth) {
		d.refuse(0, "", "is nested too deeply: use flatter sections")
	}
	return root
}

type tomlBuilder struct {
	document
	parser unstable.Parser
	text   []byte
	offset int // lines are counted up to here
	line   int // the line at offset
	left   int // how many more nodes may be made
}

func (b *tomlBuilder) root() *node {
	root := &node{kind: kindTable}
	section := root
	for b.left >= 0 && b.parser.NextExpression() {
		expr := b.parser.Expression()
		switch expr.Kind {
		case unstable.Table:
			parent, name, line := b.place(root, expr.Key())
			section = b.child(parent, name, line)
		case unstable.ArrayTable:
			parent, name, line := b.place(root, expr.Key())
			list := parent.get(name)
			if list == nil {
				list = parent.set(name, &node{kind: kindList, origin: line})
			}
			section = b.node(kindTable, "", line)
			list.items = append(list.items, section)
		case unstable.KeyValue:
			b.keyValue(section, expr, 0)
		}
	}
	return root
}

func (b *tomlBuilder) keyValue(section *node, expr *unstable.Node, depth int) {
	parent, name, line := b.place(section, expr.Key())
	value := b.value(expr.Value(), line, depth)
	value.name = name
	parent.fields = append(parent.fields, value)
}

// place resolves a dotted key in a section. It returns the section that holds the last part, that part, and its line.
func (b *tomlBuilder) place(section *node, key unstable.Iterator) (parent *node, name, line string) {
	for key.Next() {
		if name != "" || line != "" {
			section = b.child(section, name, line)
		}
		name, line = string(key.Node().Data), b.origin(b.lineAt(int(key.Node().Raw.Offset)))
	}
	return section, name, line
}

// child returns the subsection of that name, which it creates if necessary. Of a list of tables it returns the last one.
func (b *tomlBuilder) child(section *node, name, line string) *node {
	child := section.get(name)
	if child == nil {
		return section.set(name, b.node(kindTable, "", line))
	}
	if child.kind == kindList {
		return child.items[len(child.items)-1]
	}
	return child
}

func (b *tomlBuilder) node(k kind, text, line string) *node {
	b.left--
	return &node{kind: k, text: text, origin: line}
}

func (b *tomlBuilder) value(value *unstable.Node, line string, depth int) *node {
	text := string(value.Data)
	switch value.Kind {
	case unstable.InlineTable:
		table := b.node(kindTable, "", line)
		for entries := value.Children(); depth <= maxDepth && entries.Next(); {
			b.keyValue(table, entries.Node(), depth+1)
		}
		return table
	case unstable.Array:
		list := b.node(kindList, "", line)
		for items := value.Children(); depth <= maxDepth && items.Next(); {
			list.items = append(list.items, b.value(items.Node(), line, depth+1))
		}
		return list
	case unstable.String:
		return b.node(kindString, text, line)
	case unstable.Bool:
		return b.node(kindBool, text, line)
	case unstable.Integer:
		number, _ := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
		return b.node(kindInteger, strconv.FormatInt(number, 10), line)
	case unstable.Float:
		number, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		return b.node(kindFloat, formatFloat(number), line)
	default:
		return b.node(kindDate, text, line)
	}
}

// lineAt returns the line of an offset. It goes on from the last call, since keys come in order.
func (b *tomlBuilder) lineAt(offset int) int {
	if offset > b.offset {
		b.line += bytes.Count(b.text[b.offset:offset], []byte("\n"))
		b.offset = offset
	}
	return b.line
}
