package limit

import "context"

type billKey struct{}

// WithBill has Bill tell of what calls of ours cost that are made for the work of ctx.
func WithBill(ctx context.Context, bill func(ctx context.Context, usd float64, known bool)) context.Context {
	return context.WithValue(ctx, billKey{}, bill)
}

// Bill tells what a call of ours cost, in USD, if that is known.
func Bill(ctx context.Context, usd float64, known bool) {
	if bill, ok := ctx.Value(billKey{}).(func(context.Context, float64, bool)); ok {
		bill(ctx, usd, known)
	}
}
