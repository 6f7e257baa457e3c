package bench

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/valyala/fasthttp"
)

// ServeBare is the bare proxy that everything is compared with: fasthttp's server, which buffers bodies, and its client, headers
// copied, nothing else. It logs its address to out.
func ServeBare(upstream string, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bare proxy: %w", err)
	}
	fmt.Fprintf(out, `{"msg":"serving","listen":%q}`+"\n", l.Addr().String())
	if err := newBare(upstream).Serve(l); err != nil {
		return fmt.Errorf("bare proxy: %w", err)
	}
	return nil
}

// bareBody is the largest body of the bare proxy, in bytes.
const bareBody = 64 << 20

func newBare(upstream string) *fasthttp.Server {
	up := &fasthttp.HostClient{Addr: upstream, MaxConns: 1024}
	return &fasthttp.Server{MaxRequestBodySize: bareBody, NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		bareTurn(up, ctx)
	}}
}

// bareTurn hands a request on and its answer back. An event stream is handed on as it comes.
func bareTurn(up *fasthttp.HostClient, ctx *fasthttp.RequestCtx) {
	streamed := strings.HasPrefix(string(ctx.Request.Header.Peek(headerAnswer)), "stream")
	ctx.Request.Header.Del("Connection")
	ctx.Response.StreamBody, ctx.Response.ImmediateHeaderFlush = streamed, streamed
	if err := up.Do(&ctx.Request, &ctx.Response); err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadGateway)
		return
	}
	ctx.Response.Header.Del("Connection")
}
