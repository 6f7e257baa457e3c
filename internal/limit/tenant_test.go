package limit

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

func TestBudgets(t *testing.T) {
	for want, b := range map[string]Budget{
		`{"usd":0,"tokens":0,"period":"0s","then":""}`:               {},
		`{"usd":0,"tokens":5,"period":"day","then":"refuse"}`:        {Tokens: 5, Period: Day},
		`{"usd":0.5,"tokens":0,"period":"1h0m0s","then":"condense"}`: {USD: .5, Period: Period(time.Hour), Then: Condense},
		`{"usd":1e-06,"tokens":0,"period":"1m0s","then":"refuse"}`:   {USD: 1e-6, Period: Period(time.Minute)},
	} {
		if set := b.USD != 0 || b.Tokens != 0; b.Set() != set {
			t.Errorf("%+v is set: %t", b, b.Set())
		}
		if text, err := json.Marshal(b); err != nil || string(text) != want {
			t.Errorf("%+v is written as %s, %v", b, text, err)
		}
	}
}

func TestCharged(t *testing.T) {
	for name, c := range map[string]struct {
		call Call
		want bool
	}{
		"answered":                {Call{}, true},
		"failed":                  {Call{Failed: true}, false},
		"failed after the prompt": {Call{Failed: true, Input: 1}, true},
		"broke off":               {Call{Failed: true, Output: 1}, true},
	} {
		if got := c.call.Charged(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestContextsWithoutLimits: a call may be made if the context says nothing about trust and budgets; otherwise its functions decide.
func TestContextsWithoutLimits(t *testing.T) {
	ctx := t.Context()
	if !Trusted(ctx) || Spent(ctx, "m") {
		t.Error("a call is refused that nothing limits")
	}
	for _, yes := range []bool{true, false} {
		if got := Trusted(WithTrust(ctx, func() bool { return yes })); got != yes {
			t.Errorf("trusted %t, want %t", got, yes)
		}
		spent := WithBudget(ctx, func(_ context.Context, model string) bool { return yes && model == "m" })
		if got := Spent(spent, "m"); got != yes || Spent(spent, "n") {
			t.Errorf("spent %t, want %t", got, yes)
		}
	}
}
