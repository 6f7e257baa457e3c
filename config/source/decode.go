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

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// decoder fills structs from nodes. Keys are the yaml tags. A key without a field is a problem; a null leaves the default.
type decoder struct {
	problems  *problems
	condenser string // the type of the enclosing condenser, which determines its keys and those of its overrides
}

func (d decoder) value(v reflect.Value, n *node, key string) {
	d.problems.givenAt(key, n.origin)
	switch {
	case isTenants(v.Type()):
		d.tenants(v, n, key)
	case n.kind == kindBroken:
	case n.kind == kindNull:
		if syntax.IsScalar(v.Type()) && v.Kind() != reflect.String { // other types may be empty, so null is read as absent
			d.problems.add(key, "has no value: give it one, or remove the key")
		}
	case v.Type() == reflect.TypeFor[config.Holdout]() && n.kind != kindTable:
		d.value(fieldOf(v, "share"), n, key)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(v.Elem(), n, key)
	case syntax.IsScalar(v.Type()):
		if err := setScalar(v, n); err != nil {
			d.problems.add(key, "%v", err)
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
		if v.Type() == reflect.TypeFor[config.Condenser]() {
			d.problems.add(key, "must be a section of keys, not %s: write it as %s", n.kind, condenserOf(n))
			return
		}
		own := syntax.KeysOf(v.Type())
		d.problems.add(key, "must be a section of keys, not %s: write it as {%s: ...}", n.kind, strings.Join(own[:min(2, len(own))], ": ...} or {"))
		return
	}
	switch special := v.Addr().Interface().(type) { // sections whose defaults depend on their content
	case *config.Condenser:
		d.condenser = prepareCondenser(special, n)
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
		if f.name == "condenser" && f.kind == kindTable && len(f.fields) == 0 {
			continue // as if it was not there
		}
		d.value(fieldOf(v, f.name), f, path)
	}
	if m, ok := v.Addr().Interface().(*model.Info); ok && !seen["max_output"] && m.MaxOutput > m.ContextWindow && seen["context_window"] {
		m.MaxOutput = m.ContextWindow / 4 // because the default assumes a larger window
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

// foreign reports whether a key does not belong to its section, and adds a problem if so.
func (d decoder) foreign(section reflect.Type, f *node, key string) bool {
	condenser, override := reflect.TypeFor[config.Condenser](), reflect.TypeFor[config.Override]()
	if message := removed(section, f.name); message != "" {
		d.problems.addAt(f.origin, syntax.Join(key, f.name), "%s", message)
		return true
	}
	own, advice := syntax.KeysOf(section), "use one of "
	e, _ := catalogue.Find(d.condenser)
	known := own // the keys of any type of condenser
	switch {
	case d.condenser == "": // not in a condenser, or in one of unknown type
	case section == condenser:
		own = e.Keys
		advice = fmt.Sprintf("type %q has ", d.condenser)
		if len(own) == 0 {
			advice += "no keys"
		}
	case section == override:
		own = e.Thresholds()
		known = syntax.KeysOf(condenser)
	}
	switch {
	case slices.Contains(own, f.name), f.name == "type" && section == condenser:
		return false
	case !slices.Contains(known, f.name):
		if meant := syntax.Closest(f.name, own); meant != "" {
			d.problems.unknown(key, f, "did you mean "+meant+"?")
			return true
		}
		d.problems.unknown(key, f, advice+strings.Join(own, ", "))
	case section == override && (e.Has(f.name) || f.name == "type"):
		d.problems.addAt(f.origin, syntax.Join(key, f.name), "cannot be set per model: remove it, or use %s", strings.Join(own, ", "))
	default:
		d.problems.addAt(f.origin, syntax.Join(key, f.name), "%s", config.ForeignKey(d.condenser, own))
	}
	return true
}

// names reads a section whose keys are names chosen by the user. Its entries are sections or values.
func (d decoder) names(v reflect.Value, n *node, key string) {
	if n.kind != kindTable {
		d.problems.add(key, "must be a section of named entries, not %s: write it as {NAME: ...}", n.kind)
		return
	}
	if v.IsNil() && len(n.fields) > 0 {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, f := range n.fields {
		entry, path := reflect.New(v.Type().Elem()).Elem(), syntax.Join(key, f.name)
		d.problems.givenAt(path, f.origin)
		empty := f.kind == kindNull || f.kind == kindTable && len(f.fields) == 0
		if e, known := catalogue.Find(d.condenser); known && empty && entry.Type() == reflect.TypeFor[config.Override]() {
			d.problems.add(path, "overrides nothing: give it one of %s, or remove it", strings.Join(e.Thresholds(), ", "))
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
		d.problems.add(key, "must be a list, not %s: write it in brackets, as [A, B]", n.kind)
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

// splitList splits the comma-separated list of an environment variable.
func splitList(n *node) (items []*node) {
	if strings.TrimSpace(n.text) == "" {
		return nil
	}
	for part := range strings.SplitSeq(n.text, ",") {
		items = append(items, &node{kind: kindText, text: strings.TrimSpace(part), origin: n.origin})
	}
	return items
}

// setScalar sets a field to the value of a node. The error is the message of a problem.
func setScalar(v reflect.Value, n *node) error {
	switch v.Interface().(type) {
	case time.Duration:
		return scalar[time.Duration]{
			parse: time.ParseDuration, kinds: []kind{kindString, kindInteger}, what: "a duration", advice: "write it as 30s, 5m or 720h",
			malformed: "is not a duration: write it with a unit, such as 30s, 5m or 720h", mend: mendDuration,
		}.set(v, n)
	case limit.Period:
		return scalar[limit.Period]{
			parse: limit.ParsePeriod, kinds: []kind{kindString, kindInteger}, what: "a period", advice: "write it as day, month, 30d or 12h",
		}.set(v, n)
	case limit.Bytes:
		return scalar[limit.Bytes]{
			parse: limit.ParseBytes, kinds: []kind{kindString, kindInteger}, what: "a size", advice: "write it as 64MiB", mend: mendSize,
		}.set(v, n)
	}
	switch v.Kind() {
	case reflect.String:
		return setString(v, n)
	case reflect.Bool:
		return scalar[bool]{
			parse: strconv.ParseBool, kinds: []kind{kindBool}, what: "true or false", advice: "write it without quotes",
			malformed: "is neither true nor false: write one of them", mend: mendBool,
		}.set(v, n)
	case reflect.Float64:
		return scalar[float64]{
			parse: finite, kinds: []kind{kindInteger, kindFloat}, what: "a number", advice: "write it without quotes or unit",
			malformed: "is not a finite number: write it as 0.75", mend: mendNumber,
		}.set(v, n)
	}
	return scalar[int64]{
		parse: whole, kinds: []kind{kindInteger}, what: "a whole number", advice: "write it without quotes, decimal point or unit", mend: mendWhole,
	}.set(v, n)
}

// scalar says how values of a type are read.
type scalar[T any] struct {
	parse     func(string) (T, error)
	kinds     []kind // kinds of nodes that may have such a value, in addition to kindText
	what      string // what the value must be, for error messages
	advice    string // how to write it
	malformed string // message for text that parse refuses; empty: the error of parse

	// mend returns how to write what a text seems to mean, or "". The text is never one from the environment, which no message shows. It may be
	// nil.
	mend func(text string) string
}

func (s scalar[T]) set(v reflect.Value, n *node) error {
	meant := ""
	if n.kind != kindText && s.mend != nil {
		meant = s.mend(n.text)
		if _, err := s.parse(meant); err != nil {
			meant = ""
		}
	}
	if n.kind != kindText && !slices.Contains(s.kinds, n.kind) {
		if meant != "" {
			return fmt.Errorf("must be %s, not %s: write %s", s.what, n.kind, meant)
		}
		return fmt.Errorf("must be %s, not %s: %s", s.what, n.kind, s.advice)
	}
	value, err := s.parse(n.text)
	if err != nil && meant != "" {
		return fmt.Errorf("is not %s: write %s", s.what, meant)
	}
	if err != nil {
		return errors.New(cmp.Or(s.malformed, err.Error()))
	}
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
	return nil
}

// setString accepts numbers and booleans as they are written in the file: a password may look like one.
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

// condenserOf returns how to write as a condenser what is a list or the name of a type.
func condenserOf(n *node) string {
	switch {
	case n == nil:
	case n.kind == kindList:
		var stages []string
		for _, item := range n.items {
			stage := condenserOf(item)
			if item.kind == kindTable {
				stage = condenserOf(item.get("type"))
			}
			if len(item.fields) > 1 {
				stage = strings.TrimSuffix(stage, "}") + ", ...}"
			}
			stages = append(stages, stage)
		}
		return "{type: pipeline, condensers: [" + strings.Join(stages, ", ") + "]}"
	case config.MeantType(n.text) != "":
		return "{type: " + config.MeantType(n.text) + "}"
	}
	return "{type: ...}"
}

// prepareCondenser sets the defaults of the type that the section names or means, and returns the type. It returns "" if the type is unknown, so that
// keys of any type are accepted.
func prepareCondenser(c *config.Condenser, n *node) (condenserType string) {
	given := n.get("type")
	switch {
	case given != nil && given.kind != kindNull:
		c.Type = given.text
	case c.Type == catalogue.TypeExcerpts && meansSummaries(n):
		c.Type = catalogue.TypeLLM
	}
	e, known := catalogue.Find(c.Type)
	if !known {
		return ""
	}
	*c = e.Settings()
	if given != nil {
		given.text = e.Type
	}
	return e.Type
}

// meansSummaries reports whether a section without a type has a key that belongs to summaries, such as llm_config.
func meansSummaries(n *node) bool {
	llm, _ := catalogue.Find(catalogue.TypeLLM)
	excerpts, _ := catalogue.Find(catalogue.TypeExcerpts)
	return slices.ContainsFunc(n.fields, func(f *node) bool { return llm.Has(f.name) && !excerpts.Has(f.name) })
}

// prepareModel sets the built-in limits and prices of the model as defaults, so that an entry may set a single key. If the entry sets the
// input price but no cache prices, the cache prices equal the input price.
func prepareModel(m *model.Info, n *node) *node {
	*m, _ = model.Table{}.Lookup(n.name)
	if n.get("price") != nil { // of one's own, for prompts of any length
		m.Price.Long = model.Tier{}
	}
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
