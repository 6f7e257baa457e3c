package limit

import "context"

// Call is what a call of ours took.
type Call struct {
	Model   string
	Input   int // tokens, as the server told; a guess where it did not, or failed after it had been asked: its prompt is likely to be charged
	Cached  int
	Written int // to a cache, at a price of its own
	Output  int
	USD     float64
	Known   bool // what it cost
	Failed  bool // it has no reply
}

type billKey struct{}

// WithBill has Bill tell of calls of ours that are made for the work of ctx.
func WithBill(ctx context.Context, bill func(context.Context, Call)) context.Context {
	return context.WithValue(ctx, billKey{}, bill)
}

// Bill tells what a call of ours took.
func Bill(ctx context.Context, c Call) {
	if bill, ok := ctx.Value(billKey{}).(func(context.Context, Call)); ok {
		bill(ctx, c)
	}
}

type trustKey struct{}

// WithTrust has Trusted ask whether the client that work is done for may spend the operator's money.
func WithTrust(ctx context.Context, trusted func() bool) context.Context {
	return context.WithValue(ctx, trustKey{}, trusted)
}

// Trusted reports whether the operator's money may be spent on the work of ctx. It may, unless WithTrust says otherwise.
func Trusted(ctx context.Context) bool {
	trusted, ok := ctx.Value(trustKey{}).(func() bool)
	return !ok || trusted()
}
