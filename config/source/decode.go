package source

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
)

// decoder fills structs from nodes. Keys are the yaml tags; a key without a field is a problem, a null keeps the default.
type decoder struct{ problems *problems }

func (d decoder) value(v reflect.Value, n *node, key string) {
	d.problems.givenAt(key, n.origin)
	switch {
	case isTenants(v.Type()):
		d.tenants(v, n, key)
	case n.kind == kindBroken:
	case n.kind == kindNull:
		d.null(v, key)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem(), n, key)
	case syntax.IsScalar(v.Type()):
		d.scalar(v, n, key)
	case v.Kind() == reflect.Slice:
		d.list(v, n, key)
	case v.Kind() == reflect.Map:
		d.names(v, n, key)
	default:
		d.section(v, n, key, "")
	}
}

// null is a key with nothing after it: as if absent, where empty has a meaning.
func (d decoder) null(v reflect.Value, key string) {
	if syntax.IsScalar(v.Type()) && v.Kind() != reflect.String {
		d.problems.add(key, "has no value: give it one, or remove the key")
	}
}

func (d decoder) section(v reflect.Value, n *node, key, name string) {
	if n.kind != kindTable {
		d.problems.add(key, "must be a section of keys, not %s", n.kind)
		return
	}
	switch special := v.Addr().Interface().(type) { // their defaults and keys depend on what the section says
	case *config.Condenser:
		n = prepareCondenser(special, d.problems, n, key)
	case *model.Info:
		n = prepareModel(special, n, name)
	}
	seen := map[string]bool{}
	for _, f := range n.fields {
		i := fieldIndex(v.Type(), f.name)
		switch {
		case i < 0:
			d.problems.unknown(key, f, "use one of "+strings.Join(syntax.KeysOf(v.Type()), ", "))
		case seen[f.name]:
			d.problems.givenAt(syntax.Join(key, f.name), f.node.origin)
			d.problems.add(syntax.Join(key, f.name), "is given twice, under two names: keep one")
		default:
			d.value(v.Field(i), f.node, syntax.Join(key, f.name))
		}
		seen[f.name] = true
	}
}

func (d decoder) names(v reflect.Value, n *node, key string) {
	if n.kind != kindTable {
		d.problems.add(key, "must be a section of names, not %s", n.kind)
		return
	}
	if v.IsNil() && len(n.fields) > 0 {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, f := range n.fields {
		entry := reflect.New(v.Type().Elem()).Elem()
		path := syntax.Join(key, f.name)
		d.problems.givenAt(path, f.node.origin)
		if f.node.kind != kindNull && f.node.kind != kindBroken {
			d.entry(entry, f.node, path, f.name)
		}
		v.SetMapIndex(reflect.ValueOf(f.name), entry)
	}
}

// entry is a section of its name, or one value.
func (d decoder) entry(v reflect.Value, n *node, key, name string) {
	if syntax.IsScalar(v.Type()) {
		d.scalar(v, n, key)
		return
	}
	d.section(v, n, key, name)
}

func (d decoder) list(v reflect.Value, n *node, key string) {
	if n.kind == kindText && syntax.IsScalar(v.Type().Elem()) {
		n = splitList(n)
	}
	if n.kind != kindList {
		d.problems.add(key, "must be a list, not %s", n.kind)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		if item.kind == kindNull {
			d.problems.add(syntax.Index(key, i), "has no value: give it one, or remove it")
			continue
		}
		d.value(v.Index(i), item, syntax.Index(key, i))
	}
}

// splitList reads the comma separated list of an environment variable.
func splitList(n *node) *node {
	list := &node{kind: kindList, origin: n.origin}
	if strings.TrimSpace(n.text) == "" {
		return list
	}
	for part := range strings.SplitSeq(n.text, ",") {
		list.items = append(list.items, &node{kind: kindText, text: strings.TrimSpace(part), origin: n.origin})
	}
	return list
}

func (d decoder) scalar(v reflect.Value, n *node, key string) {
	if wrong := setScalar(v, n); wrong != "" {
		d.problems.add(key, "%s", wrong)
	}
}

// setScalar sets a field to what a node says, or gives what is wrong with that.
func setScalar(v reflect.Value, n *node) (wrong string) {
	switch v.Interface().(type) {
	case time.Duration:
		return n.must("a duration", "write it as 30s, 5m or 720h", []kind{kindString, kindInteger}, func() string { return setDuration(v, n.text) })
	case limit.Bytes:
		return n.must("a size", "write it as 64MiB", []kind{kindString, kindInteger}, func() string { return setBytes(v, n.text) })
	}
	switch v.Kind() {
	case reflect.String:
		return setString(v, n)
	case reflect.Bool:
		return n.must("true or false", "write it without quotes", []kind{kindBool}, func() string { return setBool(v, n.text) })
	case reflect.Float64:
		return n.must("a number", "write it without quotes or unit", []kind{kindInteger, kindFloat}, func() string { return setFloat(v, n.text) })
	}
	return n.must("a whole number", "write it without quotes, point or unit", []kind{kindInteger}, func() string { return setInt(v, n.text) })
}

// must calls set if the node is of one of the kinds, or is text, which may be any.
func (n *node) must(be, how string, kinds []kind, set func() string) string {
	if n.kind != kindText && !slices.Contains(kinds, n.kind) {
		return "must be " + be + ", not " + n.kind.String() + ": " + how
	}
	return set()
}

// setString takes numbers and booleans as they stand in the file: passwords look like numbers.
func setString(v reflect.Value, n *node) string {
	text := n.written
	if n.kind == kindString || n.kind == kindText {
		text = n.text
	} else if text == "" {
		return n.must("a string", "put it in quotes", nil, nil)
	}
	v.SetString(text)
	return ""
}

func setBool(v reflect.Value, text string) string {
	value, err := strconv.ParseBool(text)
	if err != nil {
		return "is neither true nor false: write one of them"
	}
	v.SetBool(value)
	return ""
}

func setInt(v reflect.Value, text string) string {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "is not a whole number: write digits only"
	}
	if value > math.MaxInt32 || value < math.MinInt32 {
		return "is out of range: write a smaller number"
	}
	v.SetInt(value)
	return ""
}

func setFloat(v reflect.Value, text string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return "is not a finite number: write it as 0.75"
	}
	v.SetFloat(value)
	return ""
}

func setDuration(v reflect.Value, text string) string {
	value, err := time.ParseDuration(text)
	if err != nil {
		return "is not a duration: write it with a unit, as 30s, 5m or 720h"
	}
	v.SetInt(int64(value))
	return ""
}

func setBytes(v reflect.Value, text string) string {
	value, err := limit.ParseBytes(text)
	if err != nil {
		return err.Error()
	}
	v.SetInt(int64(value))
	return ""
}

func fieldIndex(t reflect.Type, key string) int {
	for i := range t.NumField() {
		if key != "" && syntax.KeyOf(t.Field(i)) == key {
			return i
		}
	}
	return -1
}
