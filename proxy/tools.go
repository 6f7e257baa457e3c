package proxy

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/valyala/fasthttp"
)

// ToolsPath is where clients reach tools that read their own sessions.
const ToolsPath = "/plugs/mcp"

// Caller is the client of a request for tools.
type Caller struct {
	Tenant     string
	Anonymous  bool
	Credential string
	Failed     func(error) // is told why a session could not be read
}

type callerKey struct{}

// CallerOf returns the client of a request that Options.Tools gets.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// serveTools answers a request for tools. It needs a key as any request does.
func (r *request) serveTools(ctx *fasthttp.RequestCtx) error {
	if err := r.acceptFor(ctx, func(t *Tenant) *UpstreamConfig { return &t.Upstream }); err != nil {
		return err
	}
	r.recorder.record.Asked.Path = ToolsPath
	caller := Caller{
		Tenant: r.tenant.Name, Anonymous: r.tenant.Anonymous, Credential: r.params.credentials, Failed: r.server.degraded.readFailed,
	}
	req, err := http.NewRequestWithContext(context.WithValue(r.ctx, callerKey{}, caller), r.params.method, ToolsPath, bytes.NewReader(r.body.bytes))
	if err != nil {
		return fmt.Errorf("request for tools: %w", err)
	}
	req.Host = string(ctx.Host())
	for name, value := range ctx.Request.Header.All() {
		req.Header.Add(string(name), string(value))
	}
	answer := &buffered{header: http.Header{}}
	r.server.o.Tools.ServeHTTP(answer, req)
	for name, values := range answer.header {
		for _, v := range values {
			ctx.Response.Header.Add(name, v)
		}
	}
	ctx.SetStatusCode(answer.code())
	ctx.SetBody(answer.body.Bytes())
	r.share(&ctx.Response.Header)
	r.recorder.end(answer.code(), "")
	return nil
}

// buffered is an http.ResponseWriter that keeps the answer.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header { return b.header }

func (b *buffered) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

func (b *buffered) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return b.body.Write(p)
}

// Flush does nothing: the answer is sent as a whole.
func (b *buffered) Flush() {}

func (b *buffered) code() int {
	if b.status == 0 {
		return http.StatusOK
	}
	return b.status
}
