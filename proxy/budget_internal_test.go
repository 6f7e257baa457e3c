package proxy

import (
	"errors"
	"testing"
)

// TestBudget: one alone has all of it for a body and four fifths for several, a stranger half, many strangers together four fifths; and
// nobody more than there is.
func TestBudget(t *testing.T) {
	b := newBudget(1000)
	known, other := b.open(client{tenant: "a"}), b.open(client{tenant: "b"})
	stranger, another := b.open(client{"c", credential{1}, true}), b.open(client{"c", credential{2}, true})
	f := func(a *account, n, holds int64, code string) {
		t.Helper()
		err := a.take(n, holds)
		if e, _ := errors.AsType[*apiError](err); e == nil && code != "" || e != nil && e.Code != code {
			t.Errorf("%d more than %d: %v, want %q", n, holds, err, code)
		}
	}
	f(known, 1000, 0, "")
	f(other, 1, 0, "overloaded")
	known.give(1000)
	f(known, 400, 0, "")
	f(known, 401, 0, codeShare)
	f(known, 400, 0, "")
	f(other, 160, 0, "")
	f(other, 1, 0, codeShare)
	f(known, 0, 0, codeShare) // it has what it has, and gets no more
	if h := b.held(); h["a"] != (Held{800, 800}) || h["b"] != (Held{160, 160}) {
		t.Errorf("%v", h)
	}
	known.give(800)
	other.give(160)
	f(stranger, 1, 0, "")
	f(stranger, 499, 0, "")
	f(stranger, 1, 0, codeShare)
	f(another, 250, 0, "")
	f(another, 1, 0, codeShare)
	third := b.open(client{"c", credential{3}, true})
	f(third, 51, 0, codeShare) // alone it might: together they may not
	f(third, 50, 0, "")
	f(known, 160, 0, "")
	if h := b.held()["c"]; h != (Held{800, 500}) {
		t.Errorf("%v", h)
	}
	for _, a := range []*account{known, other, stranger, another, third} {
		a.give(a.held)
		a.close()
	}
	if b.used != 0 || b.strangers.held != 0 || len(b.accounts) != 0 {
		t.Errorf("%d and %d are left, %d accounts", b.used, b.strangers.held, len(b.accounts))
	}
}
