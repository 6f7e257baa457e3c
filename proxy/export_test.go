package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"time"
)

// NewTransportTo is NewTransport for upstreams whose certificates are not public.
func NewTransportTo(roots *x509.CertPool) *Transport {
	return newTransport(0, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
}

// SetRetryWindow sets how late the end of a kept connection may come for its request to be sent again.
func (t *Transport) SetRetryWindow(d time.Duration) { t.window = d }

// Parked is how many connections wait for a request without buffers.
func (s *Server) Parked() int {
	_, silent := s.ports.Count()
	return silent
}

// Busy is how many requests of a tenant are under way.
func (s *Server) Busy(tenant string) int64 {
	for _, t := range s.live.Load().Tenants {
		if t.Name == tenant {
			return t.gate.busy.Load()
		}
	}
	return -1
}

// Bases are the tenants' upstreams.
func (t Tenants) Bases() (all []*url.URL) {
	for _, tenant := range t {
		all = append(all, tenant.Upstream.BaseURL)
	}
	return all
}
