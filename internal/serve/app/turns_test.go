package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// TestNoVocabulary checks that counts are conservative estimates if a vocabulary cannot be loaded.
func TestNoVocabulary(t *testing.T) {
	counters := &tokenCounters{encoders: tokenize.New()}
	counters.config.Store(&config.Config{Models: map[string]model.Info{"m": {Encoding: "lost"}}})
	c := counters.Counter("m")
	if n := c.Text("hello"); c.Encoding() != "estimate" || n < 1 || n > 5 {
		t.Errorf("%s: %d tokens", c.Encoding(), n)
	}
	if n := c.Message(session.Content{Role: "user"}) + c.Text("[]"); n < 2 {
		t.Errorf("%d tokens", n)
	}
}

// TestSecretIsKept: if Redis has lost the secret, a replica writes it back, so that replicas that start later use the same one. If a new
// replica was faster, the others adopt its secret.
func TestSecretIsKept(t *testing.T) {
	server, ctx := miniredis.RunT(t), t.Context()
	replica := func() *lazyRegistry {
		store := records.New(redisstore.Open(redisstore.Options{Addrs: []string{server.Addr()}}), records.Options{})
		t.Cleanup(func() { _ = store.Close() })
		return &lazyRegistry{store: session.Guard(store, nil)}
	}
	opened := func(r *lazyRegistry) (*session.Registry, session.Secret) {
		t.Helper()
		registry, _, secret, err := r.Registry(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return registry, secret
	}
	follow := func(r *lazyRegistry, want bool) {
		t.Helper()
		if adopted, err := r.follow(ctx, r.store); err != nil || adopted != want {
			t.Errorf("adopted %v, %v; want %v", adopted, err, want)
		}
	}
	first, idle := replica(), replica()
	registry, secret := opened(first)
	follow(first, false)
	server.FlushAll()
	follow(idle, false) // it has none to give back
	follow(first, false)
	if _, other := opened(replica()); !bytes.Equal(other, secret) {
		t.Error("a replica that starts after Redis has lost the secret has another one")
	}
	if again, _ := opened(first); again != registry {
		t.Error("a registry whose secret is still in Redis was replaced")
	}
	server.FlushAll()
	_, now := opened(replica())
	follow(first, true)
	again, adopted := opened(first)
	if !bytes.Equal(adopted, now) || bytes.Equal(now, secret) || again == registry {
		t.Error("the secret in Redis was not adopted")
	}
	follow(first, false)
	configured, own := replica(), session.Secret(strings.Repeat("s", 32))
	configured.secret = own
	if _, used := opened(configured); !bytes.Equal(used, own) {
		t.Error("a configured secret is not used")
	}
	former := replica()
	former.secret = own
	if err := server.Set("dp:secret:2", "of an earlier version"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := former.Registry(ctx); !errors.Is(err, session.ErrUnavailable) || !strings.Contains(err.Error(), "earlier version") {
		t.Errorf("keys of an earlier version are used with a configured secret: %v", err)
	}
	server.Close()
	if adopted, err := first.follow(ctx, first.store); adopted || err == nil {
		t.Errorf("without Redis: adopted %v, %v", adopted, err)
	}
	if kept, _ := opened(first); kept != again {
		t.Error("without Redis, the registry was replaced")
	}
}

// meetingStore fails to return its secret once two callers wait for it.
type meetingStore struct {
	session.Backend
	met *sync.WaitGroup
}

func (s meetingStore) Secret(context.Context, session.Secret) (session.Secret, error) {
	s.met.Done()
	s.met.Wait()
	return nil, session.ErrUnavailable
}

// TestRequestsWaitForTheStoreConcurrently: until Redis has answered once, requests wait for it concurrently rather than one after the other.
func TestRequestsWaitForTheStoreConcurrently(t *testing.T) {
	var met sync.WaitGroup
	met.Add(2)
	r, failed := &lazyRegistry{store: meetingStore{met: &met}}, make(chan error, 2)
	for range 2 {
		go func() {
			_, _, _, err := r.Registry(t.Context())
			failed <- err
		}()
	}
	for range 2 {
		select {
		case err := <-failed:
			if !errors.Is(err, session.ErrUnavailable) {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a request waits for another one")
		}
	}
}
