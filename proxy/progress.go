package proxy

import (
	"context"
	"sync"
	"time"
)

// progress cancels a call upstream that makes none: for longer than its limit, upstream has taken nothing of the body and not begun to answer.
// A nil progress has no limit. Safe for concurrent use.
type progress struct {
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer // nil once the call has ended
}

// watchProgress begins with a call. It cancels the call with context.DeadlineExceeded.
func watchProgress(limit time.Duration, cancel context.CancelCauseFunc) *progress {
	if limit <= 0 {
		return nil
	}
	return &progress{limit: limit, timer: time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })}
}

// made is called when upstream has taken a part of the body. A transport may go on reading the body after the answer has begun.
func (p *progress) made() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(p.limit)
	}
}

// end is called once the answer has begun, or the call has failed.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.timer = nil
}
