package source

import (
	"cmp"
	"errors"
	"fmt"
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
type decoder struct {
	problems  *problems
	condenser string // the type of the condenser that is decoded, which says what keys it and its overrides have
}

func (d decoder) value(v reflect.Value, n *node, key string) {
	d.problems.givenAt(key, n.origin)
	switch {
	case isTenants(v.Type()):
		d.tenants(v, n, key)
	case n.kind == kindBroken:
	case n.kind == kindNull:
		if syntax.IsScalar(v.Type()) && v.Kind() != reflect.String { // elsewhere it is as if absent: empty has a meaning
			d.problems.add(key, "has no value: give it one, or remove the key")
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem(), n, key)
	case syntax.IsScalar(v.Type()):
		if wrong := setScalar(v, n); wrong != nil {
			d.problems.add(key, "%v", wrong)
		}
	case v.Kind() == reflect.Slice:
		d.list(v, n, key)
	case v.Kind() == reflect.Map:
		d.names(v, n, key)
	default:
		d.section(v, n, key)
	}
}

func (d decoder) section(v reflect.Value, n *node, key string) {
	if n.kind != kindTable {
		d.problems.add(key, "must be a section of keys, not %s", n.kind)
		return
	}
	switch special := v.Addr().Interface().(type) { // their defaults and keys depend on what the section says
	case *config.Condenser:
		d.condenser, n = prepareCondenser(special, n)
	case *model.Info:
		n = prepareModel(special, n)
	}
	seen := map[string]bool{}
	for _, f := range n.fields {
		path := syntax.Join(key, f.name)
		if d.foreign(v.Type(), f, key) {
			continue
		}
		if seen[f.name] {
			d.problems.addAt(f.origin, path, "is given twice, under two names: keep one")
			continue
		}
		seen[f.name] = true
		d.value(fieldOf(v, f.name), f, path)
	}
}

func fieldOf(v reflect.Value, key string) reflect.Value {
	for f, value := range v.Fields() {
		if syntax.KeyOf(f) == key {
			return value
		}
	}
	return reflect.Value{}
}

// foreign reports a key that does not belong to its section.
func (d decoder) foreign(section reflect.Type, f *node, key string) bool {
	condenser, override := reflect.TypeFor[config.Condenser](), reflect.TypeFor[config.Override]()
	mine, of := syntax.KeysOf(section), "use one of "
	every := mine
	switch section {
	case condenser:
		mine, of = config.CondenserKeys(d.condenser), fmt.Sprintf("type %q has ", d.condenser)
		if len(mine) == 0 {
			of += "no keys"
		}
	case override:
		mine, every = config.Thresholds(d.condenser), syntax.KeysOf(condenser)
	}
	switch {
	case slices.Contains(mine, f.name), f.name == "type" && section == condenser:
		return false
	case !slices.Contains(every, f.name):
		d.problems.unknown(key, f, of+strings.Join(mine, ", "))
	case section == override && (slices.Contains(config.CondenserKeys(d.condenser), f.name) || f.name == "type"):
		d.problems.addAt(f.origin, syntax.Join(key, f.name), "cannot differ by model: remove it, or use %s", strings.Join(mine, ", "))
	default:
		d.problems.addAt(f.origin, syntax.Join(key, f.name), "%s", config.ForeignKey(d.condenser, mine))
	}
	return true
}

// names reads a section whose keys are names, of sections or of values.
func (d decoder) names(v reflect.Value, n *node, key string) {
	if n.kind != kindTable {
		d.problems.add(key, "must be a section of names, not %s", n.kind)
		return
	}
	if v.IsNil() && len(n.fields) > 0 {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, f := range n.fields {
		entry, path := reflect.New(v.Type().Elem()).Elem(), syntax.Join(key, f.name)
		d.problems.givenAt(path, f.origin)
		if entry.Type() == reflect.TypeFor[config.Override]() && (f.kind == kindNull || f.kind == kindTable && len(f.fields) == 0) {
			d.problems.add(path, "overrides nothing: give it one of %s, or remove it", strings.Join(config.Thresholds(d.condenser), ", "))
		}
		if f.kind != kindNull {
			d.value(entry, f, path)
		}
		v.SetMapIndex(reflect.ValueOf(f.name), entry)
	}
}

func (d decoder) list(v reflect.Value, n *node, key string) {
	items := n.items
	if n.kind == kindText && syntax.IsScalar(v.Type().Elem()) {
		items = splitList(n)
	} else if n.kind != kindList {
		d.problems.add(key, "must be a list, not %s", n.kind)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		if item.kind == kindNull {
			d.problems.add(syntax.Index(key, i), "has no value: give it one, or remove it")
			continue
		}
		d.value(v.Index(i), item, syntax.Index(key, i))
	}
}

// splitList reads the comma separated list of an environment variable.
func splitList(n *node) (items []*node) {
	if strings.TrimSpace(n.text) == "" {
		return nil
	}
	for part := range strings.SplitSeq(n.text, ",") {
		items = append(items, &node{kind: kindText, text: strings.TrimSpace(part), origin: n.origin})
	}
	return items
}

// setScalar sets a field to what a node says, or gives what is wrong with that.
func setScalar(v reflect.Value, n *node) error {
	switch v.Interface().(type) {
	case time.Duration:
		return scalar[time.Duration]{
			time.ParseDuration, []kind{kindString, kindInteger}, "a duration", "write it as 30s, 5m or 720h",
			"is not a duration: write it with a unit, as 30s, 5m or 720h",
		}.set(v, n)
	case limit.Bytes:
		return scalar[limit.Bytes]{limit.ParseBytes, []kind{kindString, kindInteger}, "a size", "write it as 64MiB", ""}.set(v, n)
	}
	switch v.Kind() {
	case reflect.String:
		return setString(v, n)
	case reflect.Bool:
		return scalar[bool]{
			strconv.ParseBool, []kind{kindBool}, "true or false", "write it without quotes", "is neither true nor false: write one of them",
		}.set(v, n)
	case reflect.Float64:
		return scalar[float64]{
			finite, []kind{kindInteger, kindFloat}, "a number", "write it without quotes or unit", "is not a finite number: write it as 0.75",
		}.set(v, n)
	}
	return scalar[int64]{whole, []kind{kindInteger}, "a whole number", "write it without quotes, point or unit", ""}.set(v, n)
}

// scalar is how values of a type are read: from nodes of some kinds, or from text, which may be any.
type scalar[T any] struct {
	parse     func(string) (T, error)
	kinds     []kind
	what, how string // what it must be, and how that is written
	malformed string // what is wrong with text that cannot be parsed; empty: what parse says
}

func (s scalar[T]) set(v reflect.Value, n *node) error {
	if n.kind != kindText && !slices.Contains(s.kinds, n.kind) {
		return fmt.Errorf("must be %s, not %s: %s", s.what, n.kind, s.how)
	}
	value, err := s.parse(n.text)
	if err != nil {
		return errors.New(cmp.Or(s.malformed, err.Error()))
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
	return nil
}

// setString takes numbers and booleans as they stand in the file: passwords look like numbers.
func setString(v reflect.Value, n *node) error {
	switch {
	case n.kind == kindString || n.kind == kindText:
		v.SetString(n.text)
	case n.written == "":
		return fmt.Errorf("must be a string, not %s: put it in quotes", n.kind)
	default:
		v.SetString(n.written)
	}
	return nil
}

func whole(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, errors.New("is not a whole number: write digits only")
	case n > math.MaxInt32 || n < math.MinInt32:
		return 0, errors.New("is out of range: write a smaller number")
	}
	return n, nil
}

func finite(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, strconv.ErrRange
	}
	return f, err
}

// prepareCondenser sets the defaults of the type that the section names. Where that is unknown, nothing can be said about its other keys.
func prepareCondenser(c *config.Condenser, n *node) (condenserType string, _ *node) {
	given := n.get("type")
	if given != nil && given.kind != kindNull {
		c.Type = given.text
	}
	canonical, known := config.CanonicalType(c.Type)
	switch {
	case known:
		*c = config.NewCondenser(canonical)
		if given != nil {
			given.text = canonical
		}
	case given != nil:
		n = &node{kind: kindTable, fields: []*node{given}}
	default:
		n = &node{kind: kindTable}
	}
	return canonical, n
}

// prepareModel starts from what is known of the model of that name, so that an entry may give one key only. A price with an
// input but no cached prices has no discount and no surcharge for the cache.
func prepareModel(m *model.Info, n *node) *node {
	*m, _ = model.Table{}.Lookup(n.name)
	input := n.get("price").get("input")
	if input == nil {
		return n
	}
	if usd, err := strconv.ParseFloat(input.text, 64); err != nil || !(usd >= 0) {
		return n
	}
	n = n.clone()
	price := n.get("price")
	for _, key := range []string{"cached_input", "cache_write"} {
		if price.get(key) == nil {
			price.set(key, input.clone())
		}
	}
	return n
}
