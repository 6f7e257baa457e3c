package soak

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/process"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

// redisServer is the program.
const redisServer = "redis-server"

// redis is a real server in a directory of its own. It appends to its file once a second: what is younger may be lost
// when it is killed.
type redis struct {
	addr string
	dir  string
	port string
	run  *process.Process
}

func startRedis(ctx context.Context, dir string) (*redis, error) {
	addr, err := process.FreeAddr()
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	r := &redis{addr: addr, dir: dir, port: port}
	return r, r.start(ctx)
}

// start starts the server, again if it was killed: on the same port and with what it had written. It returns when the
// server listens and has read its data.
func (r *redis) start(ctx context.Context) error {
	run, err := process.Start(redisServer, "--port", r.port, "--bind", "127.0.0.1", "--dir", r.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--loglevel", "warning")
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	r.run = run
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := r.ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-run.Ended:
			return fmt.Errorf("start redis: it ended:\n%s", run.Log)
		case <-ctx.Done():
			return fmt.Errorf("start redis: %w:\n%s", errors.Join(ctx.Err(), err), run.Log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *redis) ping(ctx context.Context) error {
	store, err := redisstore.Open(redisstore.Options{Addrs: []string{r.addr}, Timeout: time.Second})
	if err != nil {
		return err
	}
	return errors.Join(store.Ping(ctx), store.Close())
}

func (r *redis) kill() { r.run.Kill() }

// stop makes the server hang; resume lets it go on.
func (r *redis) stop() error { return r.signal(syscall.SIGSTOP) }

func (r *redis) resume() error { return r.signal(syscall.SIGCONT) }

func (r *redis) signal(s os.Signal) error {
	if err := r.run.Command.Process.Signal(s); err != nil {
		return fmt.Errorf("signal redis: %w", err)
	}
	return nil
}
