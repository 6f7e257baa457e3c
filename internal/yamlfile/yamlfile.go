// Package yamlfile reads files of YAML, or of JSON, which is a subset, that others may have written. It bounds what they take: the YAML library
// takes time and memory that are out of proportion to some texts, and panics on others.
package yamlfile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of a file.
const (
	MaxDepth = 32    // levels of sections and lists
	MaxNodes = 50000 // values, including those that aliases repeat
)

// Kind is the kind of a value.
type Kind int

// Kinds of values.
const (
	Null Kind = iota
	Broken
	String
	Integer
	Float
	Bool
	List
	Table
)

// String returns the kind as error messages name it.
func (k Kind) String() string {
	return [...]string{"nothing", "nothing", "a string", "a whole number", "a decimal number", "true or false", "a list", "a section"}[k]
}

// Value is a value in a file. Values that an alias repeats are shared. They must not be changed.
type Value struct {
	Kind    Kind
	Line    int    // 0: not known
	Text    string // the canonical text of a scalar
	Written string // a number or boolean as written in the file
	Problem string // what is wrong with a broken value, and what to do; empty: Parse returned an error
	Items   []*Value
	Fields  []Field

	size int
}

// Field is an entry of a section. If its key or its value is wrong, its value is broken.
type Field struct {
	Name  string
	Line  int // of the key; 0: not known
	Value *Value
}

// Malformed is the message of the Error for a text that is not YAML.
const Malformed = "is not YAML: check indentation, colons and quotes"

// Error says why a file cannot be read. It does not quote the file.
type Error struct {
	Line    int // 0: not known
	Message string
}

func (e Error) Error() string { return e.Message }

// Parse parses one document. It resolves aliases and merge keys, and refuses tags and further documents. An empty document is an empty section.
// The error is an Error.
func Parse(text []byte) (*Value, error) {
	switch {
	case tooNested(text):
		return nil, Error{Message: "is nested too deeply: use flatter sections"}
	case hasHole(text):
		return nil, Error{Message: "has hundreds of blank lines in a row: remove them"}
	}
	file, line := parse(text)
	if file == nil {
		return nil, Error{Line: line, Message: Malformed}
	}
	b := &builder{anchors: map[string]*Value{}, left: MaxNodes}
	return b.documents(file)
}

// parse parses a document. If it is malformed, it returns nil and the line if that is known, but not the parser's message, which quotes the
// document. The parser panics on some malformed documents.
func parse(text []byte) (file *ast.File, line int) {
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
// than MaxDepth.
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

// hasHole reports whether a document has many blank lines in a row. The parser takes a time that is cubic in their number.
func hasHole(text []byte) bool {
	const most = 500
	lines := strings.NewReplacer(" ", "", "\t", "", "\r", "\n").Replace(string(text))
	return strings.Contains(lines, strings.Repeat("\n", most))
}

type builder struct {
	anchors map[string]*Value
	left    int // how many more values there may be
}

func (b *builder) documents(file *ast.File) (*Value, error) {
	var root *Value
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			return nil, Error{Message: "contains several YAML documents: keep one"}
		}
		root = b.value(doc.Body, 0)
	}
	switch {
	case b.left < 0:
		return nil, Error{Message: fmt.Sprintf("contains more than %d values, aliases expanded: shorten it", MaxNodes)}
	case root == nil || root.Kind == Null:
		return &Value{Kind: Table}, nil
	}
	return root, nil
}

// value builds the value of a node.
func (b *builder) value(n ast.Node, depth int) *Value {
	b.left--
	if depth > MaxDepth {
		return broken(n, "is nested too deeply: use flatter sections")
	}
	if b.left < 0 {
		return &Value{Kind: Broken} // documents reports it, once
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.table(n, n.Values, depth)
	case *ast.MappingValueNode:
		return b.table(n, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		return b.list(n, depth)
	case *ast.AnchorNode:
		value := b.value(n.Value, depth+1)
		b.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return b.alias(n)
	default:
		return scalar(n)
	}
}

func (b *builder) table(at ast.Node, values []*ast.MappingValueNode, depth int) *Value {
	table, names := &Value{Kind: Table, Line: lineOf(at), size: 1}, map[string]bool{}
	add := func(f Field) {
		table.Fields = append(table.Fields, f)
		table.size += f.Value.size
	}
	var merged []*Value
	for _, entry := range values {
		if entry.Key.Type() == ast.MergeKeyType {
			merged = append(merged, b.value(entry.Value, depth+1))
			continue
		}
		name, ok := keyOf(entry.Key)
		if !ok {
			add(Field{Name: "?", Value: broken(entry, "is not a plain key: write the key as a word")})
			continue
		}
		f := Field{Name: name, Line: lineOf(entry.Key), Value: b.value(entry.Value, depth+1)}
		if names[name] {
			f = Field{Name: name, Value: broken(entry, "is given twice: keep one")}
		}
		names[name] = true
		add(f)
	}
	for _, from := range merged {
		merge(add, names, from)
	}
	return table
}

// merge adds the fields that a "<<" key refers to. The table's own keys, names, take precedence.
func merge(add func(Field), names map[string]bool, from *Value) {
	switch from.Kind {
	case Table:
		for _, f := range from.Fields {
			if !names[f.Name] {
				names[f.Name] = true
				add(f)
			}
		}
	case List:
		for _, item := range from.Items {
			merge(add, names, item)
		}
	case Broken:
		add(Field{Name: "<<", Value: from})
	default:
		problem := fmt.Sprintf("must name a section, not %s: write <<: *name", from.Kind)
		add(Field{Name: "<<", Value: &Value{Kind: Broken, Line: from.Line, Problem: problem, size: 1}})
	}
}

func (b *builder) list(n *ast.SequenceNode, depth int) *Value {
	list := &Value{Kind: List, Line: lineOf(n), size: 1}
	for _, item := range n.Values {
		value := b.value(item, depth+1)
		list.Items = append(list.Items, value)
		list.size += value.size
	}
	return list
}

func (b *builder) alias(n *ast.AliasNode) *Value {
	known := b.anchors[n.Value.GetToken().Value]
	if known == nil {
		return broken(n, "uses an anchor that is not defined above it: define it with &name first")
	}
	if b.left -= known.size; b.left < 0 {
		return &Value{Kind: Broken}
	}
	return known
}

func scalar(n ast.Node) *Value {
	s := &Value{Line: lineOf(n), size: 1}
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return s
	case *ast.StringNode:
		s.Kind, s.Text = String, n.Value
		return s
	case *ast.LiteralNode:
		s.Kind, s.Text = String, n.Value.Value
		return s
	case *ast.IntegerNode:
		s.Kind, s.Text = Integer, fmt.Sprint(n.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		s.Kind, s.Text = Float, strconv.FormatFloat(n.(ast.ScalarNode).GetValue().(float64), 'f', -1, 64)
	case *ast.BoolNode:
		s.Kind, s.Text = Bool, strconv.FormatBool(n.Value)
	default:
		return broken(n, "uses YAML that is not supported: write a plain value, without a tag")
	}
	s.Written = n.GetToken().Value
	return s
}

func broken(n ast.Node, problem string) *Value {
	return &Value{Kind: Broken, Line: lineOf(n), Problem: problem, size: 1}
}

func keyOf(key ast.MapKeyNode) (string, bool) {
	switch key := key.(type) {
	case *ast.StringNode:
		return key.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return key.GetToken().Value, true
	default:
		return "", false
	}
}

// lineOf returns the line of a node, or 0 if it is not known.
func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}
