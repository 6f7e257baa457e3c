package sessiontest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
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
	a := &Authority{t: t, key: newKey(t), certificate: template("authority")}
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign
	a.PEM = a.sign(a.certificate, &a.key.PublicKey)
	return a
}

// Issue returns a certificate for a server or a client with the given DNS name.
func (a *Authority) Issue(name string) Certificate {
	a.t.Helper()
	key, c := newKey(a.t), template(name)
	c.DNSNames = []string{name}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der := must(x509.MarshalPKCS8PrivateKey(key))(a.t)
	return Certificate{PEM: a.sign(c, &key.PublicKey), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour)}
}

func (a *Authority) sign(template *x509.Certificate, public *ecdsa.PublicKey) []byte {
	a.t.Helper()
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key))(a.t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// StartRedisTLS starts a server like StartRedis and returns it with the address of its second port. That port requires TLS,
// presents the certificate own, and accepts only clients with a certificate of the authority.
func StartRedisTLS(t testing.TB, a *Authority, own Certificate) (server *Server, secure string) {
	t.Helper()
	server = newServer(t, durable...)
	secure, port := freePort(t)
	server.args = append(server.args, "--tls-port", port, "--tls-auth-clients", "yes",
		"--tls-cert-file", server.File("cert.pem", own.PEM), "--tls-key-file", server.File("key.pem", own.Key),
		"--tls-ca-cert-file", server.File("ca.pem", a.PEM))
	server.Start()
	return server, secure
}
