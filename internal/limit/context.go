package limit

import "context"

// Call is the usage of a model call that the proxy made itself.
type Call struct {
	Model   string
	Input   int // tokens as reported, or an estimate if the server did not report them or failed after it had received the prompt
	Cached  int
	Written int // to a cache, which has its own price
	Long    int // the part of Written that is cached for an hour
	Output  int
	USD     float64
	Pico    int64 // the same in trillionths of a dollar, exactly
	Known   bool  // USD is known, because the price is
	Failed  bool  // there was no reply
	Plan    bool  // it was made with the key of a subscription, which does not bill it
}

// Charged reports whether the server may charge the call: it replied, or has received the prompt.
func (c *Call) Charged() bool { return !c.Failed || c.Input+c.Output > 0 }

type billKey struct{}

// WithBill returns a context for which Bill calls bill. It replaces an earlier function; to call that as well, bill must call Bill with the
// parent context.
func WithBill(ctx context.Context, bill func(context.Context, Call)) context.Context {
	return context.WithValue(ctx, billKey{}, bill)
}

// Bill passes a call to the function set by WithBill, if any.
func Bill(ctx context.Context, c Call) {
	if bill, ok := ctx.Value(billKey{}).(func(context.Context, Call)); ok {
		bill(ctx, c)
	}
}

type trustKey struct{}

// WithTrust returns a context for which Trusted calls trusted, which reports whether the client may spend the operator's money.
func WithTrust(ctx context.Context, trusted func() bool) context.Context {
	return context.WithValue(ctx, trustKey{}, trusted)
}

// Trusted reports whether the operator's money may be spent on the work of ctx. Without WithTrust it may.
func Trusted(ctx context.Context) bool {
	trusted, ok := ctx.Value(trustKey{}).(func() bool)
	return !ok || trusted()
}

type planKey struct{}

// WithPlan returns a context for work of a client whose key is that of a subscription, which is not billed by tokens.
func WithPlan(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, planKey{}, key)
}

// OfPlan reports whether a key is that of WithPlan.
func OfPlan(ctx context.Context, key string) bool {
	plan, ok := ctx.Value(planKey{}).(string)
	return ok && key != "" && key == plan
}

type keylessKey struct{}

// WithoutKey returns a context for work whose client's key for the model's server is not known.
func WithoutKey(ctx context.Context) context.Context {
	return context.WithValue(ctx, keylessKey{}, true)
}

// Keyless reports whether ctx is one of WithoutKey.
func Keyless(ctx context.Context) bool { return ctx.Value(keylessKey{}) != nil }

type budgetKey struct{}

// WithBudget returns a context for which Spent calls spent. spent reports whether a budget that pays for calls of a model is used up.
func WithBudget(ctx context.Context, spent func(ctx context.Context, model string) bool) context.Context {
	return context.WithValue(ctx, budgetKey{}, spent)
}

// Spent reports whether the budget for calls of a model on behalf of ctx is used up. Without WithBudget there is no budget.
func Spent(ctx context.Context, model string) bool {
	spent, ok := ctx.Value(budgetKey{}).(func(context.Context, string) bool)
	return ok && spent(ctx, model)
}
