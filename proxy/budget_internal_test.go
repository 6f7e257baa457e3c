package proxy

import (
	"errors"
	"maps"
	"testing"
)

// TestBudget: one client alone has the whole budget for one body and four fifths for several, a stranger has half, and many strangers
// together have four fifths.
func TestBudget(t *testing.T) {
	b := newBudget(1000)
	known, other := client{tenant: "a"}, client{tenant: "b"}
	stranger, another := client{"c", credential{1}, true}, client{"c", credential{2}, true}
	f := func(c client, n, holds int64, code string) {
		t.Helper()
		err := b.take(c, n, holds)
		if e, _ := errors.AsType[apiError](err); e.Code != code {
			t.Errorf("%d more than %d: %v, want %q", n, holds, err, code)
		}
	}
	f(known, 1000, 0, "")
	f(other, 1, 0, "overloaded")
	b.give(known, 1000)
	f(known, 400, 0, "")
	f(known, 401, 0, codeShare)
	f(known, 400, 0, "")
	f(other, 160, 0, "")
	f(other, 1, 0, codeShare)
	f(known, 0, 0, codeShare) // it has what it has, and gets no more
	if h, used := b.byTenant(); used != 960 || h["a"] != (HeldBytes{800, 800}) || h["b"] != (HeldBytes{160, 160}) {
		t.Errorf("%v", h)
	}
	b.give(known, 800)
	b.give(other, 160)
	f(stranger, 1, 0, "")
	f(stranger, 499, 0, "")
	f(stranger, 1, 0, codeShare)
	f(another, 250, 0, "")
	f(another, 1, 0, codeShare)
	third := client{"c", credential{3}, true}
	f(third, 51, 0, codeShare) // alone it might: together they may not
	f(third, 50, 0, "")
	f(known, 160, 0, "")
	if all, _ := b.byTenant(); all["c"] != (HeldBytes{800, 500}) {
		t.Errorf("%v", all["c"])
	}
	for c, n := range maps.Clone(b.held) {
		b.give(c, n)
	}
	if b.used != 0 || b.strangers != 0 || len(b.held) != 0 {
		t.Errorf("%d and %d are left, by %d clients", b.used, b.strangers, len(b.held))
	}
}
