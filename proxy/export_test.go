package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
)

// NewTransportTo is NewTransport for upstreams whose certificates a test made.
func NewTransportTo(roots *x509.CertPool) *Transport {
	return newTransport(0, dial.Guard{}, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
}

// SetRetryWindow sets how long after a request its kept connection may be closed for the request to be repeated.
func (t *Transport) SetRetryWindow(d time.Duration) { t.window = d }

// Parked returns how many connections wait for a request without buffers.
func (s *Server) Parked() int {
	_, idle := s.ports.Count()
	return idle
}

// Busy returns how many requests of a tenant are under way, -1 if there is no such tenant.
func (s *Server) Busy(tenant string) int64 {
	for _, t := range s.live.Load().Tenants {
		if t.Name == tenant {
			return t.gate.active.Load()
		}
	}
	return -1
}

// Bases returns the base URLs of the tenants' upstreams.
func (t Tenants) Bases() (all []*url.URL) {
	for _, tenant := range t {
		all = append(all, tenant.Upstream.BaseURL)
	}
	return all
}
