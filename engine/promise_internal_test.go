package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestBriefly: a promise that hangs leaves three quarters of the time for what it announces.
func TestBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		begun := time.Now()
		brief, end := briefly(ctx)
		defer end()
		<-brief.Done()
		if took := time.Since(begun); took != 2*time.Second || ctx.Err() != nil {
			t.Errorf("the promise gave up after %v; the rest: %v", took, ctx.Err())
		}
	})
}
