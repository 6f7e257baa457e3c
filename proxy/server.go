// Package proxy is the HTTP server: it accepts a client's request, runs one turn of the engine on it, sends it upstream and relays the
// answer. server.go has the server, handle.go the path of one request.
package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
)

// Options configure a Server. Marks, Tracer and Now may be nil.
type Options struct {
	Live
	Engine   *engine.Engine
	Upstream http.RoundTripper
	Marks    *Marks // Upstream must mark the requests with them; nil: loops are not recognised
	Limits   Limits
	Log      *zap.Logger
	Observer Observer
	Faults   Faults
	Tracer   Tracer           // nil: no spans
	Now      func() time.Time // nil: time.Now

	Tools http.Handler // at ToolsPath, for clients with a key: their requests are those of CallerOf; nil: there are none

	// Runs returns the run with an id, and whether there is one. Nil: there are no runs.
	Runs func(id string) (Run, bool)
}

// ModelInfo is the limits of a model, in tokens, and its price.
type ModelInfo struct {
	engine.Model
	Price model.Price
}

// Limits bound memory and waiting.
type Limits struct {
	Body           int64         // bytes of one request body
	InFlight       int64         // request bytes held at one time
	Header         int           // bytes of one request header
	HeaderWait     time.Duration // for a request's header
	BodyIdle       time.Duration // between two reads of a body, and how far it may fall behind 16 KiB a second
	Idle           time.Duration // of a kept connection
	AnswerWait     time.Duration // for the header of an answer, since upstream last took a part of the body; 0: no limit
	StreamIdle     time.Duration // between two reads of an answer; 0: no limit
	PendingAppends int           // log writes under way

	// AcceptGrace is how long Shutdown goes on accepting: connections that the kernel has already completed would be reset otherwise.
	AcceptGrace time.Duration

	// KeepAlive is how long a streamed request waits for a condensation before the client is sent a comment, and how long between two
	// comments. 0: no comments.
	KeepAlive time.Duration
}

// DefaultLimits returns limits for a shared proxy.
func DefaultLimits() Limits {
	return Limits{
		Body: 64 << 20, InFlight: 512 << 20, Header: 16 << 10,
		HeaderWait: 30 * time.Second, BodyIdle: 30 * time.Second, Idle: 5 * time.Minute,
		PendingAppends: 1024, KeepAlive: 5 * time.Second,
		AcceptGrace: 100 * time.Millisecond,
	}
}

// Server serves the data port.
type Server struct {
	o        Options
	http     *fasthttp.Server
	reader   bodyReader
	live     atomic.Pointer[live]
	degraded degraded
	logged   struct { // by kind of message: the names about which it was logged
		sync.Mutex
		names map[string][]string
	}
	accepted   lru.Cache[credential, struct{}]  // credentials that upstream accepted, of anonymous tenants
	reportable lru.Cache[reportKey, reportable] // requests of gateways
	after      background
	ports      *listen.Ports
	draining   atomic.Bool
	requests   context.Context // ends when Shutdown cuts off the requests under way
	cut        context.CancelFunc
	ctx        context.Context // ends when Shutdown is over
	cancel     context.CancelFunc
}

// New returns a server that does not listen yet.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	accepted := lru.New[credential, struct{}](maxAccepted)
	s := &Server{
		o:        o,
		accepted: accepted, reportable: lru.New[reportKey, reportable](maxReportable),
		after: background{pending: make(chan struct{}, o.Limits.PendingAppends)},
		reader: bodyReader{
			pool: &bufferPool{}, budget: newBudget(o.Limits.InFlight), limit: o.Limits.Body, setting: "limits.max_body", idle: o.Limits.BodyIdle,
		},
	}
	s.degraded.o = &s.o
	s.logged.names = map[string][]string{}
	s.Swap(o.Live)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.requests, s.cut = context.WithCancel(s.ctx)
	s.http = s.newHTTP()
	s.ports = listen.New(s.http.ServeConn, o.Limits.HeaderWait)
	return s
}

func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.malformed,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		NoDefaultDate:                true,
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		MaxRequestBodySize:           int(s.o.Limits.Body) + 1,
		ReadBufferSize:               s.o.Limits.Header,
		ReadTimeout:                  s.o.Limits.HeaderWait,
		IdleTimeout:                  s.o.Limits.Idle,
		ConnState:                    listen.Follow,
		SecureErrorLogMessage:        true,
		Logger:                       log.New(io.Discard, "", 0), // this package logs and counts its errors
	}
}

// malformed answers a request that fasthttp could not read.
func (s *Server) malformed(ctx *fasthttp.RequestCtx, err error) {
	e := closing(400, "malformed_request", "The request is not valid HTTP/1.1.")
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &small):
		e.Status, e.Code = 431, "header_too_large"
		e.Message = "The request header is too large. Send fewer or shorter headers, or raise limits.max_header."
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Status, e.Code, e.Message = 408, "request_timeout", "The request did not arrive in time."
	}
	s.newRequest(ctx, requestID(nil)).refuse(ctx, e)
}

// InFlight returns how many request bytes the server holds.
func (s *Server) InFlight() int64 {
	_, used := s.reader.budget.byTenant()
	return used
}

// Held is an iterator over the request bytes that the clients of each tenant hold.
func (s *Server) Held(yield func(tenant string, h HeldBytes) bool) {
	held, _ := s.reader.budget.byTenant()
	for _, t := range s.live.Load().Tenants {
		if !yield(t.Name, held[t.Name]) {
			return
		}
	}
}

// Cooling is an iterator over the tenants: whether the tenant's summariser is cooling down after failures.
func (s *Server) Cooling(yield func(tenant string, cooling bool) bool) {
	for _, t := range s.live.Load().Tenants {
		if !yield(t.Name, t.Cooling != nil && t.Cooling()) {
			return
		}
	}
}
