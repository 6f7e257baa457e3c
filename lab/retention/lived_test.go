package retention

import (
	"context"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// TestLived: a condenser forgets nothing before its limit, and afterwards goes on from what it forgot.
func TestLived(t *testing.T) {
	r := opened(t, long(250))
	moments := r.actions(1500)
	if len(moments) < 10 {
		t.Fatalf("%d moments", len(moments))
	}
	all, err := live(context.Background(), condense.Noop{}, moments)
	if err != nil || all.Memory == 0 || all.Recalled != all.Memory {
		t.Fatalf("whole histories: %+v, %v", all, err)
	}
	some, err := live(context.Background(), condense.AmortizedForgetting{Settings: condense.Settings{MaxTokens: 1500, KeepFirst: KeepFirst}}, moments)
	if err != nil || some.Memory != all.Memory || some.Recalled >= all.Recalled || some.Share >= all.Share {
		t.Errorf("condensed: %+v, whole: %+v, %v", some, all, err)
	}
	quoted, err := live(context.Background(), condense.Excerpts{Settings: condense.Settings{MaxTokens: 1500, KeepFirst: KeepFirst}}, moments)
	if err != nil || quoted.Memory != all.Memory || quoted.Recalled < some.Recalled {
		t.Errorf("excerpts: %+v, without: %+v, %v", quoted, some, err)
	}
}
