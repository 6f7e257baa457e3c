package proxy

import (
	"errors"
	"runtime/debug"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"
)

// refuse answers with an error. A client that has left is only counted.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, r *request, err error) {
	if e := r.failedWith(err); e != nil {
		answer(ctx, e, r.asked.speaks)
		return
	}
	ctx.SetConnectionClose()
	ctx.SetStatusCode(statusClientGone)
}

// failedWith takes note of a request's error, and gives it as the client is told of it; nil if it has left.
func (r *request) failedWith(err error) *apiError {
	var e *apiError
	switch {
	case errors.Is(err, errClientGone):
		r.seen.refused(statusClientGone, CodeClientGone)
		return nil
	case errors.As(err, &e):
	default:
		r.server.o.Log.Error("request failed", zap.Error(err))
		e = errInternal()
	}
	r.seen.refused(e.Status, e.Code)
	return e
}

// statusClientGone is nginx's status for a client that left before it was answered; it is counted, never read.
const statusClientGone = 499

// recovered turns a panic into an error of one request.
func (s *Server) recovered(ctx *fasthttp.RequestCtx, r *request) {
	if v := recover(); v != nil {
		s.panicked(v)
		e := errInternal()
		e.Close = true
		r.seen.refused(e.Status, e.Code)
		answer(ctx, e, r.asked.speaks)
	}
}

func (s *Server) panicked(v any) { s.o.panicked(v) }

func (o *Options) panicked(v any) {
	o.Log.Error("panic", zap.Any("value", v), zap.ByteString("stack", debug.Stack()))
	o.Faults.Panicked()
}

// inBackground does work next to a request, or in line with it where the server is about to end.
func (s *Server) inBackground(work func()) {
	guarded := func() {
		defer func() {
			if v := recover(); v != nil {
				s.panicked(v)
			}
		}()
		work()
	}
	if !s.after.run(guarded) {
		guarded()
	}
}
