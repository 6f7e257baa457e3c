package runs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Lease is a run that this process has begun.
type Lease struct {
	Service
	ID   string
	conn *net.TCPConn
	lost chan struct{}
}

// ErrNobody is returned by Join if no process at the address knows its secret, or it is stopping.
var ErrNobody = errors.New("no process serves runs there")

// joinTimeout bounds how long Join waits.
const joinTimeout = 5 * time.Second

// Join begins a run in the process that has a control at an address.
func Join(ctx context.Context, at Address, wish Wish) (_ *Lease, err error) {
	dialer := net.Dialer{Timeout: joinTimeout}
	dialled, err := dialer.DialContext(ctx, "tcp", at.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNobody, err)
	}
	conn := dialled.(*net.TCPConn)
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err = conn.SetDeadline(time.Now().Add(joinTimeout)); err != nil {
		return nil, err
	}
	answer, err := ask(ctx, conn, at, wish)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNobody, err)
	}
	l := &Lease{answer.Service, answer.ID, conn, make(chan struct{})}
	err = conn.SetDeadline(time.Time{})
	if err == nil {
		go l.watch()
	}
	return l, err
}

// watch notices the end of the process that serves the run. It ends with the run.
func (l *Lease) watch() {
	defer close(l.lost)
	_, _ = io.Copy(io.Discard, l.conn)
}

// Lost returns a channel that is closed when the process that serves the run has ended, or the run has.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// ask sends the request that begins a run, and reads the first line of its answer.
func ask(ctx context.Context, conn net.Conn, at Address, wish Wish) (answer begun, err error) {
	body, nonce := new(bytes.Buffer), rand.Text()
	if err := json.NewEncoder(body).Encode(wish); err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at.Listen+"/runs", body)
	if err != nil {
		return answer, err
	}
	req.Header.Set(nonceHeader, nonce)
	req.Header.Set(proofHeader, at.proof(ofClient, nonce))
	if err := req.Write(conn); err != nil {
		return answer, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req) //nolint:bodyclose // it lasts as long as the run
	if err != nil {
		return answer, err
	}
	if resp.StatusCode != http.StatusOK || !at.proves(resp.Header.Get(proofHeader), ofServer, nonce) {
		return answer, errors.New(resp.Status)
	}
	line, err := bufio.NewReader(resp.Body).ReadBytes('\n')
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(line, &answer)
}

// File returns the connection that the run lasts as long as, for a child process that is to keep it open.
func (l *Lease) File() (*os.File, error) { return l.conn.File() }

// End ends the run, even if child processes have the connection open.
func (l *Lease) End() {
	_ = errors.Join(l.conn.CloseWrite(), l.conn.CloseRead()) // of all processes that have it
	<-l.lost
	_ = l.conn.Close()
}

// Base returns the base URL of the run's requests, without a version.
func (l *Lease) Base() string { return "http://" + reachable(l.Listen) + proxy.RunPath + l.ID }

// Serves reports whether a URL leads to the process itself, as a variable of a user's does who has pointed agents at it for good.
func (s Service) Serves(url string) bool {
	return strings.HasPrefix(url+"/", "http://"+reachable(s.Listen)+"/")
}

// reachable returns the address at which this machine reaches a listener.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

// Totals returns the run's totals so far.
func (l *Lease) Totals(ctx context.Context) (t Totals, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Base(), http.NoBody)
	if err != nil {
		return t, err
	}
	direct := &http.Transport{} // not by a proxy of the environment
	defer direct.CloseIdleConnections()
	resp, err := direct.RoundTrip(req)
	if err != nil {
		return t, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		return t, errors.Join(err, errors.New(resp.Status))
	}
	return t, json.Unmarshal(text, &t)
}
