package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPromiseThatHangsLeavesTimeToLog: a promise that hangs leaves three quarters of the time to log the condensation.
func TestPromiseThatHangsLeavesTimeToLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		begun := time.Now()
		limited, end := quarterOf(ctx)
		defer end()
		<-limited.Done()
		if took := time.Since(begun); took != 2*time.Second || ctx.Err() != nil {
			t.Errorf("the promise gave up after %v; the rest: %v", took, ctx.Err())
		}
	})
}
