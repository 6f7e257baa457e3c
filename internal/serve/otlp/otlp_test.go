package otlp

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// environ returns a lookup of variables, which are given without the prefix OTEL_EXPORTER_OTLP_.
func environ(vars map[string]string) func(string) string {
	return func(name string) string {
		short, _ := strings.CutPrefix(name, "OTEL_EXPORTER_OTLP_")
		return vars[short]
	}
}

func TestFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		vars    map[string]string
		url     string
		headers http.Header
		timeout time.Duration
		gzip    bool
	}{
		"nothing":             {nil, "http://localhost:4318/v1/traces", http.Header{}, 10 * time.Second, false},
		"endpoint":            {map[string]string{"ENDPOINT": "https://a:1/base/"}, "https://a:1/base/v1/traces", http.Header{}, 10 * time.Second, false},
		"endpoint for traces": {map[string]string{"ENDPOINT": "http://a", "TRACES_ENDPOINT": "http://b/x"}, "http://b/x", http.Header{}, 10 * time.Second, false},
		"no path for traces":  {map[string]string{"TRACES_ENDPOINT": "http://b"}, "http://b/", http.Header{}, 10 * time.Second, false},
		"all else": {
			map[string]string{
				"HEADERS": "lost=1", "TRACES_HEADERS": "a = b%20c ,d=e=f,", "TIMEOUT": "5000", "COMPRESSION": "gzip", "PROTOCOL": "http/protobuf",
				"OTEL_TRACES_EXPORTER": "otlp",
			},
			"http://localhost:4318/v1/traces", http.Header{"A": {"b c"}, "D": {"e=f"}}, 5 * time.Second, true,
		},
	} {
		got, err := FromEnv(environ(c.vars))
		if err != nil || got.URL != c.url || !reflect.DeepEqual(got.Headers, c.headers) || got.Timeout != c.timeout || got.Gzip != c.gzip {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestFromEnvTellsAllThatIsWrong(t *testing.T) {
	_, err := FromEnv(environ(map[string]string{
		"OTEL_TRACES_EXPORTER": "zipkin", "TRACES_PROTOCOL": "grpc", "PROTOCOL": "http/protobuf", "ENDPOINT": "localhost:4318",
		"HEADERS": "a=verysecret%zz,b", "TIMEOUT": "10s", "COMPRESSION": "zstd", "CERTIFICATE": "/no/such/file", "CLIENT_KEY": "/no/such/key",
	}))
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"OTEL_TRACES_EXPORTER", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: is "grpc"`, "OTLP_ENDPOINT", "OTLP_HEADERS: is not a list of name=value: entry 1",
		"entry 2", "OTLP_TIMEOUT", "OTLP_COMPRESSION", "OTLP_CERTIFICATE", "OTLP_CLIENT_CERTIFICATE: must be set together with OTEL_EXPORTER_OTLP_CLIENT_KEY",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "verysecret") {
		t.Error("the error shows a header's value")
	}
}

func TestWanted(t *testing.T) {
	for name, c := range map[string]struct {
		vars map[string]string
		want bool
	}{
		"nothing":             {nil, false},
		"endpoint":            {map[string]string{"ENDPOINT": "x"}, true},
		"endpoint for traces": {map[string]string{"TRACES_ENDPOINT": "x"}, true},
		"exporter":            {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true},
		"no exporter":         {map[string]string{"ENDPOINT": "x", "OTEL_TRACES_EXPORTER": "none"}, false},
		"disabled":            {map[string]string{"ENDPOINT": "x", "OTEL_SDK_DISABLED": " True"}, false},
		"not disabled":        {map[string]string{"ENDPOINT": "x", "OTEL_SDK_DISABLED": "1"}, true},
	} {
		if got := Wanted(environ(c.vars)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// batch returns spans as the SDK passes them.
func batch() []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "a"}}}}}}
}

// upload sends a batch and returns what the client reported.
func upload(t *testing.T, s Settings) error {
	t.Helper()
	reported := errors.New("nothing was reported")
	c := NewClient(s, func(err error) { reported = err })
	c.backoff = time.Millisecond
	if err := c.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.UploadTraces(t.Context(), batch()); err != nil {
		t.Errorf("the SDK got an error: %v", err)
	}
	if err := c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	return reported
}

func settings(url string) Settings { return Settings{URL: url, Timeout: 5 * time.Second} }

func TestUpload(t *testing.T) {
	for _, zip := range []bool{false, true} {
		var got tracepb.TracesData
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body := io.Reader(r.Body)
			if zip {
				body, _ = gzip.NewReader(r.Body)
			}
			raw, err := io.ReadAll(body)
			if err != nil || proto.Unmarshal(raw, &got) != nil || r.Header.Get("A") != "b" || r.Header.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("got %v, %v", r.Header, err)
			}
		}))
		s := settings(server.URL)
		s.Gzip, s.Headers = zip, http.Header{"A": {"b"}}
		if err := upload(t, s); err != nil {
			t.Error(err)
		}
		server.Close()
		if !proto.Equal(&got, &tracepb.TracesData{ResourceSpans: batch()}) {
			t.Errorf("got %v", &got)
		}
	}
}

func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		statuses []int
		attempts int
		fails    bool
	}{
		{[]int{200}, 1, false},
		{[]int{202}, 1, false},
		{[]int{503, 429, 502, 504, 200}, 5, false},
		{[]int{500}, 1, true},
		{[]int{400}, 1, true},
		{[]int{503, 401}, 2, true},
		{[]int{301}, 1, true},
	} {
		attempts := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n, _ := io.Copy(io.Discard, r.Body); n == 0 {
				t.Error("an attempt without a body")
			}
			w.WriteHeader(tt.statuses[attempts])
			attempts++
			_, _ = io.WriteString(w, "verysecret")
		}))
		err := upload(t, settings(server.URL))
		server.Close()
		if attempts != tt.attempts || (err != nil) != tt.fails || err != nil && strings.Contains(err.Error(), "verysecret") {
			t.Errorf("%v: %d attempts, %v", tt.statuses, attempts, err)
		}
	}
}

// TestGivesUp checks that the timeout of a batch holds if the collector asks for a long delay, does not answer, or cannot be
// reached.
func TestGivesUp(t *testing.T) {
	quick.Skip(t)
	patient := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
	}))
	defer patient.Close()
	if err := upload(t, settings(patient.URL)); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("error %v", err)
	}
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer silent.Close()
	defer close(over)
	s := settings(silent.URL)
	s.Timeout = 50 * time.Millisecond
	if err := upload(t, s); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("error %v", err)
	}
	s.URL, s.Timeout = "http://127.0.0.1:1", 2*time.Second
	if err := upload(t, s); err == nil || !strings.Contains(err.Error(), "reached") {
		t.Errorf("error %v", err)
	}
}

// TestTLS checks that the collector's CA and the client certificate are read from files.
func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 {
			t.Error("we did not show our certificate")
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := server.TLS.Certificates[0]
	vars := map[string]string{"TRACES_ENDPOINT": server.URL}
	cert := file("cert.pem", "CERTIFICATE", certificate.Certificate[0])
	vars["CLIENT_CERTIFICATE"], vars["CLIENT_KEY"] = cert, file("key.pem", "PRIVATE KEY", keyOf(t, certificate))
	s, err := FromEnv(environ(vars))
	if err != nil {
		t.Fatal(err)
	}
	s.Timeout = 100 * time.Millisecond
	if upload(t, s) == nil {
		t.Error("an unknown authority was trusted")
	}
	vars["CERTIFICATE"] = cert
	if s, err = FromEnv(environ(vars)); err != nil {
		t.Fatal(err)
	}
	if err := upload(t, s); err != nil {
		t.Error(err)
	}
}

func keyOf(t *testing.T, c tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
