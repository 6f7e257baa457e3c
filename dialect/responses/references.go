package responses

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

var _ dialect.Referrer = (*Dialect)(nil)

// isReference reports whether the item stands for one that upstream stores.
func (it *item) isReference() bool { return it.is("item_reference") }

// Items returns the items in a model's output that have an id. They alias said.
func (d *Dialect) Items(said []byte) map[string][]byte {
	items, _ := itemsOf(said) // an unreadable output has no items
	known := map[string][]byte{}
	for _, it := range items {
		if id := it.Get("id").Text(); id != "" && !it.isReference() {
			known[id] = it.Raw
		}
	}
	return known
}

// WithItems returns a copy of d that knows these items.
func (d *Dialect) WithItems(items map[string][]byte) dialect.Dialect {
	other := *d
	other.items = items
	return &other
}

// Resolve returns a message with the known items in place of the references to them, or nil if it refers to no known item.
func (d *Dialect) Resolve(raw []byte) []byte {
	items, err := itemsOf(raw)
	if err != nil || !slices.ContainsFunc(items, func(it *item) bool { return d.resolved(it) != it }) {
		return nil
	}
	whole := make([][]byte, len(items))
	for i, it := range items {
		whole[i] = d.resolved(it).Raw
	}
	return split.Join(whole)
}

// resolved returns the item that a reference stands for, if d knows it, and otherwise the item itself.
func (d *Dialect) resolved(it *item) *item {
	if it.isReference() {
		if known := d.items[it.Get("id").Text()]; known != nil {
			return itemOf(rawjson.ValueOf(known))
		}
	}
	return it
}
