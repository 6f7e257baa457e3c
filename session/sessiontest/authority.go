package sessiontest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"
	"time"
)

// Authority is a certificate authority for one test.
type Authority struct {
	PEM []byte // its certificate

	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate is a certificate with its key, as PEM.
type Certificate struct{ PEM, Key []byte }

// NewAuthority returns an authority whose certificates are valid for an hour.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, certificate: &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}}
	a.PEM, a.key = a.sign("authority", a.certificate)
	return a
}

// Issue returns a certificate for a server or a client with the given DNS name.
func (a *Authority) Issue(name string) Certificate {
	a.t.Helper()
	signed, key := a.sign(name, &x509.Certificate{
		DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der := must(x509.MarshalPKCS8PrivateKey(key))(a.t)
	return Certificate{PEM: signed, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

// sign signs a certificate for a new key. The first one, the authority's own, is signed with that key.
func (a *Authority) sign(name string, c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, now := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t), time.Now()
	c.Subject, c.NotBefore, c.NotAfter = pkix.Name{CommonName: name}, now.Add(-time.Minute), now.Add(time.Hour)
	der := must(x509.CreateCertificate(rand.Reader, c, a.certificate, &key.PublicKey, cmp.Or(a.key, key)))(a.t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// StartRedisTLS starts a server like StartRedis and returns it with the address of its second port. That port requires TLS,
// presents the certificate own, and accepts only clients with a certificate of the authority.
func StartRedisTLS(t testing.TB, a *Authority, own Certificate) (server *Server, secure string) {
	t.Helper()
	server = newServer(t, durable...)
	port := freePort(t)
	server.args = append(server.args, "--tls-port", port, "--tls-auth-clients", "yes",
		"--tls-cert-file", server.File("cert.pem", own.PEM), "--tls-key-file", server.File("key.pem", own.Key),
		"--tls-ca-cert-file", server.File("ca.pem", a.PEM))
	server.Start()
	return server, net.JoinHostPort(host, port)
}
