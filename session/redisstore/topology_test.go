package redisstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func TestSentinel(t *testing.T) {
	master := sessiontest.StartRedis(t)
	sentinel := sessiontest.StartSentinel(t, "main", master)
	s := start(t, Options{Addrs: []string{sentinel.Addr}, MasterName: "main", Timeout: 5 * time.Second})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	n, err := sessiontest.Command(master.Addr, "EXISTS", s.keys.thread("t"))
	must(t, err)
	if n != "1" {
		t.Errorf("the master has %s such threads", n)
	}
	unavailable(t, start(t, Options{Addrs: []string{sentinel.Addr}, MasterName: "other", Timeout: 5 * time.Second}).Ping(t.Context()))
}

func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	server := sessiontest.StartRedis(t)
	secure := sessiontest.FreeAddr(t)
	_, port, err := net.SplitHostPort(secure)
	must(t, err)
	for _, setting := range [][2]string{
		{"tls-cert-file", server.File("cert.pem", certificate)}, {"tls-key-file", server.File("key.pem", key)},
		{"tls-auth-clients", "no"}, {"tls-port", port},
	} {
		_, err := sessiontest.Command(server.Addr, "CONFIG", "SET", setting[0], setting[1])
		must(t, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	o := Options{Addrs: []string{secure}, TLS: &tls.Config{RootCAs: roots}, Timeout: 5 * time.Second}
	must(t, start(t, o).Append(t.Context(), twoEvents("t", 0)))
	o.TLS = &tls.Config{}
	unavailable(t, start(t, o).Ping(t.Context())) // a certificate that nobody vouches for
	o.TLS = nil
	unavailable(t, start(t, o).Ping(t.Context()))
}

func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}
