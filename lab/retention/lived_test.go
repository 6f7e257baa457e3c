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
	all, err := plan{condenser: condense.Noop{}}.play(context.Background(), moments, limitless, 0)
	if err != nil || all.Memory == 0 || all.Recalled != all.Memory {
		t.Fatalf("whole histories: %+v, %v", all, err)
	}
	some, err := plan{condenser: condense.AmortizedForgetting{Settings: condense.Settings{MaxTokens: 1500, KeepFirst: KeepFirst}}}.play(context.Background(), moments, limitless, 0)
	if err != nil || some.Memory != all.Memory || some.Recalled >= all.Recalled || some.Share >= all.Share {
		t.Errorf("condensed: %+v, whole: %+v, %v", some, all, err)
	}
	quoted, err := plan{condenser: condense.Excerpts{Settings: condense.Settings{MaxTokens: 1500, KeepFirst: KeepFirst}}}.play(context.Background(), moments, limitless, 0)
	if err != nil || quoted.Memory != all.Memory || quoted.Recalled < some.Recalled {
		t.Errorf("excerpts: %+v, without: %+v, %v", quoted, some, err)
	}
}
