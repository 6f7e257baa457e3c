package sessiontest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority is a certificate authority of the test's own.
type Authority struct {
	PEM []byte // its certificate

	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issued      int64
}

// Certificate is a certificate with its key, as PEM.
type Certificate struct{ PEM, Key []byte }

// NewAuthority makes an authority that vouches for an hour.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.key = newKey(t)
	a.certificate = a.template("authority")
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	a.certificate.KeyUsage = x509.KeyUsageCertSign
	a.PEM = a.sign(a.certificate, &a.key.PublicKey)
	return a
}

// Issue makes a certificate, for a server or a client, that names a host.
func (a *Authority) Issue(name string) Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template := a.template(name)
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der := must(x509.MarshalPKCS8PrivateKey(key))(a.t)
	return Certificate{PEM: a.sign(template, &key.PublicKey), Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func (a *Authority) template(name string) *x509.Certificate {
	a.issued++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
	}
}

func (a *Authority) sign(template *x509.Certificate, public *ecdsa.PublicKey) []byte {
	a.t.Helper()
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key))(a.t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// StartRedisTLS is StartRedis with a second port, at the address it returns, that speaks TLS with that certificate, and
// takes only clients that show one of the authority's own.
func StartRedisTLS(t testing.TB, a *Authority, own Certificate, args ...string) (server *Server, secure string) {
	t.Helper()
	server, secure = newServer(t, durable...), freeAddr(t)
	_, port := hostPort(t, secure)
	server.args = append(server.args, "--tls-port", port, "--tls-auth-clients", "yes",
		"--tls-cert-file", server.File("cert.pem", own.PEM), "--tls-key-file", server.File("key.pem", own.Key),
		"--tls-ca-cert-file", server.File("ca.pem", a.PEM))
	server.args = append(server.args, args...)
	server.Start()
	return server, secure
}
