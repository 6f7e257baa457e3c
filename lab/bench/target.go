package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// Target is one thing that is measured: a proxy, or the mock itself.
type Target struct {
	Name     string
	Addr     string
	proc     *process.Process // nil: it is the mock
	pids     []int            // the process's own and its children's
	stateful bool             // it remembers sessions, and has to be shown the beginning of one
}

const chatPath = "/v1/chat/completions"

func newTarget(name, addr string, proc *process.Process) *Target {
	return &Target{Name: name, Addr: addr, proc: proc, pids: []int{proc.Command.Process.Pid}}
}

// startServed starts one of the proxies that this package serves, by a command of which it is a part.
func startServed(ctx context.Context, name string, command []string, upstream string) (*Target, error) {
	p, at, err := servers.Serve(ctx, command[0], append(command[1:len(command):len(command)], upstream)...)
	if err != nil {
		return nil, err
	}
	return newTarget(name, at.Listen, p), nil
}

// listenLocally listens on a free port, and logs the address to out.
func listenLocally(out io.Writer) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		_, err = fmt.Fprintf(out, `{"msg":"serving","listen":%q}`+"\n", l.Addr().String())
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// ServeRelay is the simplest relay that Go's standard library makes: it hands a request on and its answer back, piece by piece, and reads
// neither. It logs its address to out.
func ServeRelay(upstream string, out io.Writer) error {
	l, err := listenLocally(out)
	if err != nil {
		return err
	}
	client := &http.Transport{MaxIdleConnsPerHost: 128}
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", upstream, ""
		resp, err := client.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		piece := make([]byte, 32<<10)
		for err == nil {
			var n int
			n, err = resp.Body.Read(piece)
			_, _ = w.Write(piece[:n]) // a client that has left ends the request
			_ = http.NewResponseController(w).Flush()
		}
	}))
	return fmt.Errorf("relay: %w", err)
}

// ServeBare is the bare proxy that everything is compared with: fasthttp's server, which buffers bodies, and its client, headers
// copied, nothing else. It logs its address to out.
func ServeBare(upstream string, out io.Writer) error {
	l, err := listenLocally(out)
	if err != nil {
		return err
	}
	up := &fasthttp.HostClient{Addr: upstream, MaxConns: 1024}
	bare := &fasthttp.Server{
		MaxRequestBodySize: bareBody, NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) { bareTurn(up, ctx) },
	}
	if err := bare.Serve(l); err != nil {
		return fmt.Errorf("bare proxy: %w", err)
	}
	return nil
}

// bareBody is the largest body of the bare proxy, in bytes.
const bareBody = 64 << 20

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

// setting is how a Dewpoint is started.
type setting struct {
	Name      string
	Upstream  string // empty: the mock's address
	Dir       string // a folder of its own
	Redis     string // address; empty: the embedded store
	Condenser string // its type; empty: llm
	Waits     bool   // its history is condensed as it grows, by a summariser that is slow
	InFlight  string // limits.bytes_in_flight; empty: as much as 64 connections of the largest bodies take
}

// startDewpoint starts the binary. Its condenser condenses on request only: no limit is ever reached.
func startDewpoint(ctx context.Context, binary string, s setting) (*Target, error) {
	file, err := configured(s.Dir, "dewpoint.yaml", s.config())
	if err != nil {
		return nil, err
	}
	p, at, err := servers.Serve(ctx, binary, "--config", file)
	if err != nil {
		return nil, err
	}
	t := newTarget(s.Name, at.Listen, p)
	t.stateful = true
	return t, nil
}

// configured writes a configuration into a new folder, and gives its path.
func configured(dir, name, text string) (string, error) {
	file := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return "", fmt.Errorf("write a configuration: %w", err)
	}
	return file, nil
}

func (s *setting) config() string {
	store := "{type: embedded, path: " + filepath.Join(s.Dir, "dewpoint.db") + "}"
	if s.Redis != "" {
		store = "{type: redis, redis: {addrs: [" + `"` + s.Redis + `"` + "]}}"
	}
	limits := "{bytes_in_flight: 2GiB}"
	if s.InFlight != "" {
		limits = "{bytes_in_flight: " + s.InFlight + ", max_body: 8MiB}"
	}
	condenser := "{type: " + cmp.Or(s.Condenser, "llm") + ", trigger: limits, max_size: 1000000, max_tokens: 0.75, keep_first: 2}"
	if s.Waits {
		condenser = fmt.Sprintf("{type: llm, llm_config: slow, trigger: limits, max_size: 1000000, max_tokens: %d, min_tokens: 0}\nllms: {slow: {model: %s, timeout: 10m}}", waitsLimit, slowModel)
	}
	return `listen: 127.0.0.1:0
admin: {listen: 127.0.0.1:0}
upstream: {base_url: http://` + s.Upstream + `/v1}
store: ` + store + `
models:
  ` + Model + `: {context_window: 1000000000, max_output: 4096, encoding: o200k_base}
condenser: ` + condenser + `
limits: ` + limits + `
`
}

// startNginx starts an nginx that forwards as one would set it up for an API: connections kept, requests read whole before they
// are sent, into memory, answers handed on at once.
func startNginx(ctx context.Context, dir, upstream string) (*Target, error) {
	binary, err := exec.LookPath(nameNginx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameNginx, servers.ErrNotInstalled)
	}
	addr, err := process.FreeAddr()
	if err != nil {
		return nil, err
	}
	file, err := configured(dir, "nginx.conf", nginxConfig(dir, addr, upstream))
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, "-p", dir, "-c", file, "-e", "stderr")
	command.SysProcAttr = process.DieWithParent(syscall.SIGTERM) // or its workers would stay
	p, err := process.StartCommand(command)
	if err != nil {
		return nil, err
	}
	t := newTarget(nameNginx, addr, p)
	err = servers.Ready(ctx, p, servers.Patience, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		t.pids = append(t.pids, children(t.pids[0])...)
		return conn.Close()
	})
	return t, err
}

func nginxConfig(dir, addr, upstream string) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // its folder is ours alone
	}
	return user + `daemon off;
worker_processes ` + strconv.Itoa(runtime.NumCPU()) + `;
pid ` + filepath.Join(dir, "nginx.pid") + `;
error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off;
  client_max_body_size 0;
  client_body_buffer_size 8m;
  client_body_temp_path ` + filepath.Join(dir, "body") + `;
  proxy_temp_path ` + filepath.Join(dir, "proxy") + `;
  fastcgi_temp_path ` + filepath.Join(dir, "fastcgi") + `;
  uwsgi_temp_path ` + filepath.Join(dir, "uwsgi") + `;
  scgi_temp_path ` + filepath.Join(dir, "scgi") + `;
  keepalive_requests 1000000;
  keepalive_timeout 1h;
  client_header_timeout 1h;
  upstream mock { server ` + upstream + `; keepalive 128; keepalive_requests 1000000; }
  server {
    listen ` + addr + `;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_request_buffering on;
      proxy_buffering off;
      proxy_read_timeout 600s;
    }
  }
}
`
}

// closeAll ends targets, the last one first, after their use came to err.
func closeAll(err error, targets ...*Target) error {
	for i := len(targets) - 1; i >= 0; i-- {
		if targets[i].proc != nil {
			err = errors.Join(err, servers.Stop(targets[i].proc))
		}
	}
	return err
}
