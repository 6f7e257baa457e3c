package limit

import "context"

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
