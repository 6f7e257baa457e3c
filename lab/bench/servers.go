package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	running "github.com/dewpoint-proxy/dewpoint/internal/process"
)

// errNotInstalled says that a server to compare with is not there.
var errNotInstalled = errors.New("not installed")

// startNginx starts an nginx that forwards as one would set it up for an API: connections kept, requests read whole before they
// are sent, into memory, answers handed on at once.
func startNginx(ctx context.Context, dir, upstream string) (*Target, error) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		return nil, fmt.Errorf("nginx: %w", errNotInstalled)
	}
	addr, err := running.FreeAddr()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(nginxConfig(dir, addr, upstream)), 0o600); err != nil {
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	p, err := start(program{Args: []string{binary, "-p", dir, "-c", file, "-e", "stderr"}, Dir: dir, Stop: syscall.SIGTERM})
	if err != nil {
		return nil, err
	}
	return (&Target{Name: nameNginx, Addr: addr, path: chatPath, proc: p}).awaitServing(ctx)
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

// redisServer is a Redis of the benchmark's own. It keeps everything in memory.
type redisServer struct {
	addr string
	proc *process
}

func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("redis-server: %w", errNotInstalled)
	}
	addr, err := running.FreeAddr()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	_, port, _ := net.SplitHostPort(addr)
	p, err := start(program{Dir: dir, Args: []string{
		binary, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--loglevel", "warning",
	}})
	if err != nil {
		return nil, err
	}
	if err := p.awaitPort(ctx, addr); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &redisServer{addr: addr, proc: p}, nil
}
