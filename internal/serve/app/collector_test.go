package app

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector that accepts OTLP over HTTP and keeps the batches.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	headers []http.Header
	batches []*collector.TracesData
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s, %v", req.Method, req.URL, req.Header)
		}
		r.take(t, req)
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(r.answer())
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *receiver) take(t *testing.T, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			t.Error(err)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	var batch collector.TracesData // an ExportTraceServiceRequest is the same on the wire
	if err := proto.Unmarshal(raw, &batch); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers, r.batches = append(r.headers, req.Header), append(r.batches, &batch)
}

// spans returns the received spans by name, and the attributes of their resource.
func (r *receiver) spans() (spans map[string][]*collector.Span, resource map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans, resource = map[string][]*collector.Span{}, map[string]string{}
	for _, batch := range r.batches {
		for _, of := range batch.ResourceSpans {
			for _, kv := range of.Resource.Attributes {
				resource[kv.Key] = kv.Value.GetStringValue()
			}
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					spans[s.Name] = append(spans[s.Name], s)
				}
			}
		}
	}
	return spans, resource
}
