package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestTLS connects to a server with a private certificate authority that requires client certificates.
func TestTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := sessiontest.NewAuthority(t), sessiontest.NewAuthority(t)
	_, secure := sessiontest.StartRedisTLS(t, ours, ours.Issue("redis.internal"))
	f := func(what string, want bool, conf *tls.Config) {
		t.Helper()
		s := start(t, Options{Addrs: []string{secure}, TLS: conf, Timeout: 5 * time.Second})
		if err := s.Append(t.Context(), twoEvents("t", 0)); want {
			must(t, err)
		} else {
			unavailable(t, err)
		}
	}
	own := pair(t, ours.Issue("client"))
	f("all of it", true, &tls.Config{RootCAs: roots(ours), ServerName: "redis.internal", Certificates: own})
	f("another name", false, &tls.Config{RootCAs: roots(ours), Certificates: own})
	f("another authority's server", false, &tls.Config{RootCAs: roots(theirs), ServerName: "redis.internal", Certificates: own})
	f("the system's authorities", false, &tls.Config{ServerName: "redis.internal", Certificates: own})
	f("another authority's client", false, &tls.Config{RootCAs: roots(ours), ServerName: "redis.internal", Certificates: pair(t, theirs.Issue("client"))})
	f("no client certificate", false, &tls.Config{RootCAs: roots(ours), ServerName: "redis.internal"})
	f("plain", false, nil)
}

func roots(a *sessiontest.Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM)
	return pool
}

func pair(t *testing.T, c sessiontest.Certificate) []tls.Certificate {
	t.Helper()
	own, err := tls.X509KeyPair(c.PEM, c.Key)
	must(t, err)
	return []tls.Certificate{own}
}
