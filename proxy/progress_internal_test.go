package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress: a call is cancelled once upstream has taken nothing for the whole limit, and not after it has ended.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		p := watchProgress(time.Minute, cancel)
		for range 3 {
			time.Sleep(time.Minute - 1)
			p.made()
		}
		if ctx.Err() != nil {
			t.Error("a slow upload is cut off")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Errorf("cause %v after a minute without progress", context.Cause(ctx))
		}
		ctx, cancel = context.WithCancelCause(t.Context())
		defer cancel(nil)
		p = watchProgress(time.Minute, cancel)
		p.end()
		p.made() // by a transport that still reads the body
		time.Sleep(time.Hour)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("cancelled after its end")
		}
		p = watchProgress(0, cancel)
		p.made()
		p.end()
	})
}
