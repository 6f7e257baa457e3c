package runs

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Wish is what a process asks of a run that it begins.
type Wish struct {
	Observe bool `json:"observe"`
}

// Service describes the process that serves a run.
type Service struct {
	Listen    string            `json:"listen"`    // of the data port
	Admin     string            `json:"admin"`     // of the admin port; empty: there is none
	Version   string            `json:"version"`   // of the program
	Config    string            `json:"config"`    // absolute path of its configuration file; empty: none
	Upstreams map[string]string `json:"upstreams"` // addresses by provider
	Holdable  bool              `json:"holdable"`  // the data port can be held: see platform.Hold
}

// begun answers a process that has begun a run.
type begun struct {
	Service
	ID string `json:"id"`
}

// Address is where a Control listens, and the secret of those who may use it. Both sides prove that they know it, because the address may be
// one of a process that has ended, and somebody else may listen there now.
type Address struct{ Listen, Secret string }

// Control lets other processes of this machine begin runs. A run lasts until the connection that has begun it ends, so that nothing is left of
// a process that is killed.
type Control struct {
	registry *Registry
	service  func() Service
	listener net.Listener
	secret   string
	http     *http.Server
	end      context.CancelFunc // of the runs
	serving  sync.WaitGroup
}

// NewControl opens a control on a free port. Serve serves it.
func NewControl(r *Registry, service func() Service) (*Control, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Control{registry: r, service: service, listener: listener, secret: rand.Text()}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /runs", c.begin)
	base, end := context.WithCancel(context.Background())
	c.http, c.end = &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return base }}, end
	c.serving.Go(func() { _ = c.http.Serve(listener) }) // always ErrServerClosed
	return c, nil
}

// Address returns where the control listens.
func (c *Control) Address() Address { return Address{c.listener.Addr().String(), c.secret} }

// Addr returns the same as an address of a port.
func (c *Control) Addr() net.Addr { return c.listener.Addr() }

// Close ends the runs.
func (c *Control) Close() error {
	c.end()
	err := c.http.Close()
	c.serving.Wait()
	return err
}

// Headers of the proofs.
const (
	nonceHeader = "X-Dewpoint-Nonce"
	proofHeader = "X-Dewpoint-Proof"
)

// proof proves to the other side that this one knows the secret.
func (a Address) proof(of, nonce string) string {
	mac := hmac.New(sha256.New, []byte(a.Secret))
	_, _ = mac.Write([]byte(of + " " + nonce))
	return hex.EncodeToString(mac.Sum(nil))
}

func (a Address) proves(proof, of, nonce string) bool {
	return hmac.Equal([]byte(proof), []byte(a.proof(of, nonce)))
}

// The sides of a connection.
const (
	ofClient = "client"
	ofServer = "server"
)

// begin begins a run, which ends with the connection.
func (c *Control) begin(w http.ResponseWriter, r *http.Request) {
	nonce := r.Header.Get(nonceHeader)
	if !c.Address().proves(r.Header.Get(proofHeader), ofClient, nonce) {
		http.Error(w, "not permitted", http.StatusForbidden)
		return
	}
	var wish Wish
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&wish); err != nil {
		http.Error(w, "the body is not a wish", http.StatusBadRequest)
		return
	}
	id, ok := c.registry.Begin(wish.Observe)
	if !ok {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	defer c.registry.End(id)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection cannot be kept", http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })() // Close of the Control
	if c.answer(conn, nonce, id) == nil {
		_, _ = io.Copy(io.Discard, conn) // an agent has the connection too, and may write to it what it likes
	}
}

// answer answers a process whose run has begun. What ends the answer is the end of the connection.
func (c *Control) answer(to io.Writer, nonce, id string) error {
	text, err := json.Marshal(begun{c.service(), id})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n%s: %s\r\n\r\n%s\n", proofHeader,
		c.Address().proof(ofServer, nonce), text)
	return err
}
