package source

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// parseTOML reads a TOML document; the library refuses keys and tables that are given twice.
func parseTOML(text []byte, p *problems) *node {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		p.list = append(p.list, *tomlProblem(err))
		return nil
	}
	b := tomlBuilder{problems: p, lines: tomlLines(text)}
	return b.value(tree, "", "", 0)
}

func tomlProblem(err error) *config.Problem {
	problem := &config.Problem{Key: "file", Message: "is not TOML: check quotes, brackets, and that no key or section is given twice"}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ := at.Position()
		problem.Origin = lineOrigin(line)
	}
	return problem
}

type tomlBuilder struct {
	problems *problems
	lines    map[string]int // by path
}

func (b tomlBuilder) value(value any, path, origin string, depth int) *node {
	if line, ok := b.lines[path]; ok {
		origin = lineOrigin(line)
	}
	if depth > maxDepth {
		b.problems.add("file", "is too deep: write it in flatter sections")
		return &node{kind: kindBroken}
	}
	switch value := value.(type) {
	case map[string]any:
		table := &node{kind: kindTable, origin: origin}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			table.fields = append(table.fields, field{name, b.value(value[name], syntax.Join(path, name), origin, depth+1)})
		}
		return table
	case []any:
		list := &node{kind: kindList, origin: origin}
		for i, item := range value {
			list.items = append(list.items, b.value(item, syntax.Index(path, i), origin, depth+1))
		}
		return list
	default:
		return tomlScalar(value, origin)
	}
}

func tomlScalar(value any, origin string) *node {
	switch value := value.(type) {
	case string:
		return &node{kind: kindString, text: value, origin: origin}
	case int64:
		return &node{kind: kindInteger, text: strconv.FormatInt(value, 10), origin: origin}
	case float64:
		return &node{kind: kindFloat, text: formatFloat(value), origin: origin}
	case bool:
		return &node{kind: kindBool, text: strconv.FormatBool(value), origin: origin}
	default:
		return &node{kind: kindDate, text: fmt.Sprint(value), origin: origin}
	}
}

// tomlLines finds the line of every key and table that stands on a line of its own. The document is known to be valid.
func tomlLines(text []byte) map[string]int {
	scan := tomlScan{text: text, line: 1, lines: map[string]int{}, items: map[string]int{}}
	scan.parser.Reset(text)
	for scan.parser.NextExpression() {
		scan.expression(scan.parser.Expression())
	}
	return scan.lines
}

type tomlScan struct {
	parser unstable.Parser
	lines  map[string]int
	items  map[string]int // how many [[tables]] a path has so far
	table  string

	text   []byte
	offset int // how far lines are counted
	line   int // at offset
}

func (s *tomlScan) expression(expr *unstable.Node) {
	switch expr.Kind {
	case unstable.Table:
		s.table = s.path("", expr.Key())
	case unstable.ArrayTable:
		list := s.path("", expr.Key())
		s.table = syntax.Index(list, s.items[list])
		s.items[list]++
		s.lines[s.table] = s.lines[list]
	case unstable.KeyValue:
		s.path(s.table, expr.Key())
	}
}

// path resolves a dotted key under a section, entering the newest element of every [[table]] on the way, and notes its
// line.
func (s *tomlScan) path(section string, key unstable.Iterator) string {
	path := section
	for range maxDepth {
		if !key.Next() {
			break
		}
		if n := s.items[path]; n > 0 {
			path = syntax.Index(path, n-1)
		}
		path = syntax.Join(path, string(key.Node().Data))
		s.lines[path] = s.lineAt(int(key.Node().Raw.Offset))
	}
	return path
}

// lineAt counts on from the last key: keys come in order.
func (s *tomlScan) lineAt(offset int) int {
	if offset > s.offset {
		s.line += bytes.Count(s.text[s.offset:offset], []byte("\n"))
		s.offset = offset
	}
	return s.line
}
