package source

import (
	"errors"
	"strconv"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/yamlfile"
)

const (
	maxDepth = yamlfile.MaxDepth // levels of sections and lists in a file
	maxNodes = yamlfile.MaxNodes // values in a file
)

// parseMarkup parses one document of YAML, or of JSON, which is a subset. malformed is the message if it is not one.
func (d document) parseMarkup(text []byte, malformed string) *node {
	root, err := yamlfile.Parse(text)
	if e, is := errors.AsType[yamlfile.Error](err); is {
		if e.Message == yamlfile.Malformed {
			e.Message = malformed
		}
		d.refuse(e.Line, "", "%s", e.Message)
		return nil
	}
	return yamlReader{d, map[*yamlfile.Value]bool{}}.node(root, d.path)
}

// yamlReader turns values into nodes and reports those that are broken, once each.
type yamlReader struct {
	document
	reported map[*yamlfile.Value]bool
}

// node returns the value at a path.
func (r yamlReader) node(v *yamlfile.Value, path string) *node {
	n := &node{kind: kindOf(v.Kind), text: v.Text, written: v.Written, origin: r.origin(v.Line)}
	if v.Kind == yamlfile.Broken && !r.reported[v] {
		r.reported[v] = true
		r.refuse(v.Line, path, "%s", v.Problem)
	}
	for i, item := range v.Items {
		n.items = append(n.items, r.node(item, syntax.Index(path, i)))
	}
	for _, f := range v.Fields {
		field := r.node(f.Value, syntax.Join(path, f.Name))
		if f.Value.Kind == yamlfile.Broken && f.Line == 0 { // the key itself is wrong
			continue
		}
		field.name, field.origin = f.Name, r.origin(f.Line)
		n.fields = append(n.fields, field)
	}
	return n
}

func kindOf(k yamlfile.Kind) kind {
	return [...]kind{
		yamlfile.Null: kindNull, yamlfile.Broken: kindBroken, yamlfile.String: kindString, yamlfile.Integer: kindInteger, yamlfile.Float: kindFloat,
		yamlfile.Bool: kindBool, yamlfile.List: kindList, yamlfile.Table: kindTable,
	}[k]
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
