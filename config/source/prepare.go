package source

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
)

// prepareCondenser sets the defaults of the type that the section names, and takes out the keys that do not belong to it.
func prepareCondenser(c *config.Condenser, p *problems, n *node, key string) *node {
	if given := n.get("type"); given != nil && given.kind != kindNull {
		c.Type = given.text
	}
	canonical, known := config.CanonicalType(c.Type)
	if !known {
		only := &node{kind: kindTable} // nothing can be said about its keys
		if given := n.get("type"); given != nil {
			only.set("type", given)
		}
		return only
	}
	*c = config.NewCondenser(canonical)
	return ownKeys(c.Type, p, n, key)
}

func ownKeys(condenserType string, p *problems, n *node, key string) *node {
	all, mine := syntax.KeysOf(reflect.TypeFor[config.Condenser]()), config.CondenserKeys(condenserType)
	kept := &node{kind: kindTable}
	for _, f := range n.fields {
		path := syntax.Join(key, f.name)
		p.givenAt(path, f.node.origin)
		switch {
		case f.name == "type":
		case slices.Contains(all, f.name) && !slices.Contains(mine, f.name):
			p.add(path, "%s", config.ForeignKey(condenserType, mine))
		case f.name == "per_model":
			kept.set(f.name, overrides(condenserType, p, f.node, path))
		case slices.Contains(all, f.name):
			kept.fields = append(kept.fields, f)
		default:
			p.unknown(key, f, fmt.Sprintf("type %q %s", condenserType, knownAdvice(mine)))
		}
	}
	return kept
}

// overrides takes out of the entries of per_model the keys that are no thresholds of the type.
func overrides(condenserType string, p *problems, n *node, key string) *node {
	if n.kind != kindTable {
		return n
	}
	kept := &node{kind: kindTable, origin: n.origin}
	for _, f := range n.fields {
		path := syntax.Join(key, f.name)
		p.givenAt(path, f.node.origin)
		if f.node.kind == kindNull || f.node.kind == kindTable && len(f.node.fields) == 0 {
			p.add(path, "overrides nothing: give it one of %s, or remove it", strings.Join(config.Thresholds(condenserType), ", "))
		}
		if f.node.kind == kindTable {
			f.node = override(condenserType, p, f.node, path)
		}
		kept.fields = append(kept.fields, f)
	}
	return kept
}

func override(condenserType string, p *problems, n *node, key string) *node {
	all, mine := syntax.KeysOf(reflect.TypeFor[config.Condenser]()), config.Thresholds(condenserType)
	kept := &node{kind: kindTable, origin: n.origin}
	for _, f := range n.fields {
		path := syntax.Join(key, f.name)
		p.givenAt(path, f.node.origin)
		switch {
		case slices.Contains(mine, f.name):
			kept.fields = append(kept.fields, f)
		case slices.Contains(config.CondenserKeys(condenserType), f.name) || f.name == "type":
			p.add(path, "cannot differ by model: remove it, or use %s", strings.Join(mine, ", "))
		case slices.Contains(all, f.name):
			p.add(path, "%s", config.ForeignKey(condenserType, mine))
		default:
			p.unknown(key, f, "use one of "+strings.Join(mine, ", "))
		}
	}
	return kept
}

func knownAdvice(mine []string) string {
	if len(mine) == 0 {
		return "has no keys"
	}
	return "has " + strings.Join(mine, ", ")
}

// prepareModel starts from what is known of the model of that name, so that an entry may give one key only. A price with an
// input but no cached prices has no discount and no surcharge for the cache.
func prepareModel(m *model.Info, n *node, name string) *node {
	*m, _ = model.Table{}.Lookup(name)
	price := n.get("price")
	input := price.get("input")
	if input == nil {
		return n
	}
	if usd, err := strconv.ParseFloat(input.text, 64); err != nil || !(usd >= 0) {
		return n
	}
	n = n.clone()
	price = n.get("price")
	for _, key := range []string{"cached_input", "cache_write"} {
		if price.get(key) == nil {
			price.set(key, input)
		}
	}
	return n
}
