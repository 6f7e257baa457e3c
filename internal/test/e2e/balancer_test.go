package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// balancer sends each request to the first backend that reports ready.
type balancer struct {
	backends []*backend
	client   http.Client
}

type backend struct {
	*process
	proxy  *httputil.ReverseProxy
	served atomic.Int64
}

func newBalancer(t testing.TB, processes ...*process) (*balancer, string) {
	t.Helper()
	b := &balancer{}
	for _, p := range processes {
		to := &url.URL{Scheme: "http", Host: p.Addr}
		b.backends = append(b.backends, &backend{process: p, proxy: &httputil.ReverseProxy{
			FlushInterval: -1,
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		}})
	}
	front := httptest.NewServer(b)
	t.Cleanup(front.Close)
	return b, front.URL + "/v1"
}

// ServeHTTP implements http.Handler. It reads the request first: when an answer begins, net/http's server closes a body whose end was not
// read yet, and its client gives up a connection on which it still sends that body.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	for _, one := range b.backends {
		if b.ready(one) {
			one.served.Add(1)
			one.proxy.ServeHTTP(w, r)
			return
		}
	}
	http.Error(w, "nobody is ready", http.StatusBadGateway)
}

func (b *balancer) ready(one *backend) bool {
	resp, err := b.client.Get("http://" + one.Admin + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// TestBalancerLosesNothing stops one of two proxies behind a balancer that follows /readyz: no client notices.
func TestBalancerLosesNothing(t *testing.T) {
	t.Parallel()
	redis := sessiontest.StartRedis(t)
	s := newSetting(t, fakeupstream.Options{Keep: 16, Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: loadAnswer}
	}})
	config := s.configEnding(t, inRedis(redis.Addr), manySteps, "{delay: 8s, timeout: 1m}")
	first, second := serve(t, "--config", config), serve(t, "--config", config)
	b, front := newBalancer(t, first, second)

	l := newLoad(front, 6)
	l.begin(t)
	l.after(t, 60)
	first.terminate()
	wantExit(t, first, 0)
	before := b.backends[1].served.Load()
	sessiontest.Eventually(t, "the second serves on", func() error {
		if n := b.backends[1].served.Load() - before; n < 20 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	close(l.stop)
	l.over(t)
	if b.backends[0].served.Load() < 60 {
		t.Errorf("the first served %d", b.backends[0].served.Load())
	}
}
