package source

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

const (
	maxDepth = 32    // levels of sections and lists in a file
	maxNodes = 50000 // values in a file, including those that aliases repeat
)

// parseMarkup parses one document of YAML, or of JSON, which is a subset. It resolves aliases and merge keys, and refuses tags, further
// documents and duplicate keys.
func (d document) parseMarkup(text []byte, malformed string) *node {
	if tooNested(text) {
		d.refuse(0, "", "is nested too deeply: use flatter sections")
		return nil
	}
	// The parser takes a time that is cubic in the blank lines of a text.
	if strings.Contains(strings.NewReplacer(" ", "", "\t", "", "\r", "\n").Replace(string(text)), strings.Repeat("\n", 500)) {
		d.refuse(0, "", "has hundreds of blank lines in a row: remove them")
		return nil
	}
	file, line := yamlFile(text)
	if file == nil {
		d.refuse(line, "", "%s", malformed)
		return nil
	}
	b := &yamlBuilder{document: d, anchors: map[string]*node{}, left: maxNodes}
	return b.documents(file)
}

// yamlFile parses a document. If it is malformed, it returns nil and the line if that is known, but not the parser's message, which quotes the
// document. The parser panics on some malformed documents.
func yamlFile(text []byte) (file *ast.File, line int) {
	defer func() {
		if recover() != nil {
			file, line = nil, 0
		}
	}()
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, 0
	}
	_, _ = fmt.Sscanf(err.Error(), "[%d:", &line)
	return nil, line
}

// tooNested reports whether a document may exhaust the parser's stack, which is fatal. It also counts brackets in strings, so it allows far more
// than maxDepth.
func tooNested(text []byte) bool {
	const most = 500
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if depth > most {
			return true
		}
	}
	return bytes.Contains(text, bytes.Repeat([]byte("- "), most)) || bytes.Contains(text, bytes.Repeat([]byte("? "), most))
}

type yamlBuilder struct {
	document
	anchors map[string]*node
	left    int // how many more nodes may be made
}

func (b *yamlBuilder) documents(file *ast.File) *node {
	root := &node{kind: kindTable}
	found := false
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if found {
			b.refuse(0, "", "contains several YAML documents: keep one")
			return nil
		}
		found, root = true, b.value(doc.Body, b.path, 0)
	}
	if b.left < 0 {
		b.refuse(0, "", "contains more than %d values, aliases expanded: shorten it", maxNodes)
		return nil
	}
	if root.kind == kindNull {
		return &node{kind: kindTable}
	}
	return root
}

// value builds the node at a path. If it refuses the value, the node is broken.
func (b *yamlBuilder) value(n ast.Node, path string, depth int) *node {
	b.left--
	if depth > maxDepth {
		return b.broken(n, path, "is nested too deeply: use flatter sections")
	}
	if b.left < 0 {
		return &node{kind: kindBroken} // documents reports it, once
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.table(n, n.Values, path, depth)
	case *ast.MappingValueNode:
		return b.table(n, []*ast.MappingValueNode{n}, path, depth)
	case *ast.SequenceNode:
		return b.list(n, path, depth)
	case *ast.AnchorNode:
		value := b.value(n.Value, path, depth+1)
		b.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return b.alias(n, path)
	default:
		return b.scalar(n, path)
	}
}

func (b *yamlBuilder) table(at ast.Node, values []*ast.MappingValueNode, path string, depth int) *node {
	table, names := &node{kind: kindTable, origin: b.origin(yamlLine(at))}, map[string]bool{}
	var merged []*node
	for _, entry := range values {
		if entry.Key.Type() == ast.MergeKeyType {
			merged = append(merged, b.value(entry.Value, path, depth+1))
			continue
		}
		name, ok := yamlKey(entry.Key)
		if !ok {
			b.broken(entry, syntax.Join(path, "?"), "is not a plain key: write the key as a word")
			continue
		}
		key := syntax.Join(path, name)
		value := b.value(entry.Value, key, depth+1)
		value.name, value.origin = name, b.origin(yamlLine(entry.Key))
		if names[name] {
			b.broken(entry, key, "is given twice: keep one")
			continue
		}
		names[name] = true
		table.fields = append(table.fields, value)
	}
	for _, from := range merged {
		b.merge(table, names, from, path)
	}
	return table
}

// merge adds the fields that a "<<" key refers to. The table's own keys, names, take precedence.
func (b *yamlBuilder) merge(table *node, names map[string]bool, from *node, path string) {
	switch from.kind {
	case kindTable:
		for _, f := range from.fields {
			if !names[f.name] {
				names[f.name] = true
				table.fields = append(table.fields, f)
			}
		}
	case kindList:
		for _, item := range from.items {
			b.merge(table, names, item, path)
		}
	case kindBroken:
	default:
		b.addAt(from.origin, syntax.Join(path, "<<"), "must name a section, not %s: write <<: *name", from.kind)
	}
}

func (b *yamlBuilder) list(n *ast.SequenceNode, path string, depth int) *node {
	list := &node{kind: kindList, origin: b.origin(yamlLine(n))}
	for i, item := range n.Values {
		list.items = append(list.items, b.value(item, syntax.Index(path, i), depth+1))
	}
	return list
}

func (b *yamlBuilder) alias(n *ast.AliasNode, path string) *node {
	known := b.anchors[n.Value.GetToken().Value]
	if known == nil {
		return b.broken(n, path, "uses an anchor that is not defined above it: define it with &name first")
	}
	b.left -= known.size()
	if b.left < 0 {
		return &node{kind: kindBroken}
	}
	return known.clone()
}

func (b *yamlBuilder) scalar(n ast.Node, path string) *node {
	scalar := &node{origin: b.origin(yamlLine(n))}
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return scalar
	case *ast.StringNode:
		scalar.kind, scalar.text = kindString, n.Value
		return scalar
	case *ast.LiteralNode:
		scalar.kind, scalar.text = kindString, n.Value.Value
		return scalar
	case *ast.IntegerNode:
		scalar.kind, scalar.text = kindInteger, fmt.Sprint(n.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		scalar.kind, scalar.text = kindFloat, formatFloat(n.(ast.ScalarNode).GetValue().(float64))
	case *ast.BoolNode:
		scalar.kind, scalar.text = kindBool, strconv.FormatBool(n.Value)
	default:
		return b.broken(n, path, "uses YAML that is not supported: write a plain value, without a tag")
	}
	scalar.written = n.GetToken().Value
	return scalar
}

func (b *yamlBuilder) broken(n ast.Node, path, message string) *node {
	b.refuse(yamlLine(n), path, "%s", message)
	return &node{kind: kindBroken}
}

func yamlKey(key ast.MapKeyNode) (string, bool) {
	switch key := key.(type) {
	case *ast.StringNode:
		return key.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return key.GetToken().Value, true
	default:
		return "", false
	}
}

// yamlLine returns the line of a node, or 0 if it is not known.
func yamlLine(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
