package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Settings configure a Client.
type Settings struct {
	URL     string
	Headers http.Header
	Timeout time.Duration // for a batch, including retries
	Gzip    bool
	TLS     *tls.Config // nil: trust the system's CAs
}

// Wanted reports whether the environment enables traces: it names an exporter or an endpoint, and does not disable the SDK.
func Wanted(env func(string) string) bool {
	if strings.EqualFold(strings.TrimSpace(env("OTEL_SDK_DISABLED")), "true") {
		return false
	}
	exporter := env("OTEL_TRACES_EXPORTER")
	if exporter == "" {
		return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	}
	return exporter != "none"
}

// FromEnv reads the settings from the environment. It joins all problems into one error. A variable that is specific to
// traces takes precedence over the one for all signals.
func FromEnv(env func(string) string) (Settings, error) {
	r := reader{env: env}
	if exporter := env("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		r.wrong("OTEL_TRACES_EXPORTER", "is %q: write otlp or none", exporter)
	}
	name, protocol := r.either("PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		r.wrong(name, "is %q: write http/protobuf, which collectors accept on port 4318", protocol)
	}
	s := Settings{URL: r.url(), Headers: r.headers(), Timeout: r.timeout(), Gzip: r.gzip(), TLS: r.tls()}
	return s, errors.Join(r.errs...)
}

type reader struct {
	env  func(string) string
	errs []error
}

func (r *reader) wrong(name, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
}

// either returns the variable for traces if it is set, and the one for all signals otherwise.
func (r *reader) either(key string) (name, value string) {
	if value = r.env("OTEL_EXPORTER_OTLP_TRACES_" + key); value != "" {
		return "OTEL_EXPORTER_OTLP_TRACES_" + key, value
	}
	return "OTEL_EXPORTER_OTLP_" + key, r.env("OTEL_EXPORTER_OTLP_" + key)
}

// url returns the URL for spans: the endpoint for traces unchanged, or the endpoint for all signals with /v1/traces appended.
func (r *reader) url() string {
	name, value := r.either("ENDPOINT")
	if value == "" {
		return "http://localhost:4318/v1/traces"
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.wrong(name, "is not a URL such as http://localhost:4318")
		return ""
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		return u.JoinPath("v1", "traces").String()
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// headers parses name=value pairs with percent-encoded values, as in W3C Baggage. Errors never contain a value.
func (r *reader) headers() http.Header {
	name, value := r.either("HEADERS")
	headers := http.Header{}
	for i, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, encoded, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(encoded))
		key = strings.TrimSpace(key)
		if !ok || key == "" || err != nil || strings.ContainsAny(decoded, "\r\n\x00") {
			r.wrong(name, "is not a list of name=value: entry %d is invalid", i+1)
			continue
		}
		headers.Set(key, decoded)
	}
	return headers
}

// timeout parses a number of milliseconds. The default is 10 s.
func (r *reader) timeout() time.Duration {
	name, value := r.either("TIMEOUT")
	if value == "" {
		return 10 * time.Second
	}
	ms, err := strconv.Atoi(value)
	if err != nil || ms <= 0 {
		r.wrong(name, "is not a positive number of milliseconds")
	}
	return time.Duration(ms) * time.Millisecond
}

func (r *reader) gzip() bool {
	name, value := r.either("COMPRESSION")
	if value != "" && value != "none" && value != "gzip" {
		r.wrong(name, "is neither gzip nor none")
	}
	return value == "gzip"
}

// tls reads the collector's CA and the client certificate from files.
func (r *reader) tls() *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := r.either("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		conf.RootCAs = x509.NewCertPool()
		if err != nil || !conf.RootCAs.AppendCertsFromPEM(pem) {
			r.wrong(name, "is not the path of a file with PEM certificates")
		}
	}
	certName, cert := r.either("CLIENT_CERTIFICATE")
	keyName, key := r.either("CLIENT_KEY")
	switch {
	case cert == "" && key == "":
	case cert == "" || key == "":
		r.wrong(certName, "must be set together with %s", keyName)
	default:
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			r.wrong(certName, "and %s are not a matching certificate and key", keyName)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf
}
