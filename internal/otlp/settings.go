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

// Settings say where spans go.
type Settings struct {
	URL     string
	Headers http.Header
	Timeout time.Duration // of a batch, retries included
	Gzip    bool
	TLS     *tls.Config // nil: the system's authorities
}

// Wanted reports whether the environment asks for traces: an exporter or an endpoint is named, and nothing switches them
// off.
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

// FromEnv reads the settings from the environment, and gives everything that is wrong with it as one error. Of two variables
// the one for traces alone wins.
func FromEnv(env func(string) string) (Settings, error) {
	r := reader{env: env}
	if exporter := env("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		r.wrong("OTEL_TRACES_EXPORTER", "names %q: only otlp and none are supported", exporter)
	}
	name, protocol := r.either("PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		r.wrong(name, "asks for %q: only http/protobuf is supported, collectors take it on port 4318", protocol)
	}
	s := Settings{URL: r.url(), Headers: r.headers(), Timeout: r.timeout(), Gzip: r.gzip(), TLS: r.tls()}
	return s, errors.Join(r.errs...)
}

type reader struct {
	env  func(string) string
	errs []error
}

func (r *reader) wrong(name, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s %s", name, fmt.Sprintf(format, args...)))
}

// either gives the variable for traces if it is set, else the one for all signals.
func (r *reader) either(key string) (name, value string) {
	if value = r.env("OTEL_EXPORTER_OTLP_TRACES_" + key); value != "" {
		return "OTEL_EXPORTER_OTLP_TRACES_" + key, value
	}
	return "OTEL_EXPORTER_OTLP_" + key, r.env("OTEL_EXPORTER_OTLP_" + key)
}

// url is where spans go: the endpoint for traces as it is, that for all signals with their path.
func (r *reader) url() string {
	name, value := r.either("ENDPOINT")
	if value == "" {
		return "http://localhost:4318/v1/traces"
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.wrong(name, "is not a URL: write it as http://localhost:4318")
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

// headers are name=value pairs, values percent-encoded as in W3C Baggage. An error never repeats a value.
func (r *reader) headers() http.Header {
	name, value := r.either("HEADERS")
	headers := http.Header{}
	for i, pair := range strings.Split(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, encoded, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(encoded))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil || strings.ContainsAny(decoded, "\r\n\x00") {
			r.wrong(name, "is not a list of name=value: its entry %d is wrong", i+1)
			continue
		}
		headers.Set(key, decoded)
	}
	return headers
}

// timeout is in milliseconds, 10 s by default.
func (r *reader) timeout() time.Duration {
	name, value := r.either("TIMEOUT")
	if value == "" {
		return 10 * time.Second
	}
	ms, err := strconv.Atoi(value)
	if err != nil || ms <= 0 {
		r.wrong(name, "is not a number of milliseconds")
	}
	return time.Duration(ms) * time.Millisecond
}

func (r *reader) gzip() bool {
	name, value := r.either("COMPRESSION")
	switch value {
	case "gzip":
		return true
	case "", "none":
	default:
		r.wrong(name, "is neither gzip nor none")
	}
	return false
}

// tls reads the files with the collector's authority and our own certificate.
func (r *reader) tls() *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := r.either("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		conf.RootCAs = x509.NewCertPool()
		if err != nil || !conf.RootCAs.AppendCertsFromPEM(pem) {
			r.wrong(name, "names no file with a certificate in PEM form")
		}
	}
	certName, cert := r.either("CLIENT_CERTIFICATE")
	keyName, key := r.either("CLIENT_KEY")
	switch {
	case cert == "" && key == "":
	case cert == "" || key == "":
		r.wrong(certName, "and %s must be set together", keyName)
	default:
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			r.wrong(certName, "and %s are no pair of a certificate and its key", keyName)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf
}
