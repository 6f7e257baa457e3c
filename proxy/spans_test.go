package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

const (
	parentTrace = "0af7651916cd43dd8448eb211c80319c"
	parentSpan  = "b7ad6b7169203331"
	traceparent = "00-" + parentTrace + "-" + parentSpan + "-01"
)

// traces collects the spans of a rig.
type traces struct {
	t        *testing.T
	exporter *tracetest.InMemoryExporter
}

func tracing(t *testing.T) (*traces, *observe.Spans) {
	t.Helper()
	e := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(e))
	t.Cleanup(func() { _ = p.Shutdown(t.Context()) })
	return &traces{t, e}, observe.NewSpans(p)
}

// ended returns the spans of a name, of which there must be so many.
func (s *traces) ended(r *rig, name string, n int) []tracetest.SpanStub {
	s.t.Helper()
	var found []tracetest.SpanStub
	r.wait(func() bool {
		found = nil
		for _, span := range s.exporter.GetSpans() {
			if span.Name == name {
				found = append(found, span)
			}
		}
		return len(found) >= n
	})
	if len(found) != n {
		s.t.Fatalf("%d spans are called %q, want %d", len(found), name, n)
	}
	return found
}

func attribute(s tracetest.SpanStub, key string) string {
	for _, kv := range s.Attributes {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

func wantAttributes(t *testing.T, s tracetest.SpanStub, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := attribute(s, key); got != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, key, got, value)
		}
	}
}

// TestSpans follows one request from its client's span to upstream.
func TestSpans(t *testing.T) {
	all, spans := tracing(t)
	r := newRig(t, setup{spans: spans, models: priced})
	resp, _ := r.ask(strings.Replace(helloing, `"stream"`, `"stream_options":{"include_usage":true},"stream"`, 1),
		"Traceparent", traceparent, "Tracestate", "vendor=1", "Baggage", "key=value;odd")
	server := all.ended(r, "POST "+chatPath, 1)[0]
	resolve := all.ended(r, "resolve", 1)[0]
	call := all.ended(r, "chat gpt-4o", 1)[0]
	if server.SpanContext.TraceID().String() != parentTrace || server.Parent.SpanID().String() != parentSpan || !server.Parent.IsRemote() {
		t.Errorf("the request's span is below %v", server.Parent)
	}
	for _, s := range []tracetest.SpanStub{resolve, call} {
		if s.Parent.SpanID() != server.SpanContext.SpanID() || s.StartTime.Before(server.StartTime) || s.EndTime.After(server.EndTime) {
			t.Errorf("%s is not in the request's span", s.Name)
		}
	}
	session := resp.Header.Get("X-Dewpoint-Session")
	wantAttributes(t, server, map[string]string{
		"http.request.method": "POST", "http.route": chatPath, "http.response.status_code": "200", "error.type": "",
		"gen_ai.conversation.id": session, "gen_ai.request.model": "gpt-4o", "dewpoint.tenant": "default",
		"dewpoint.thread": resp.Header.Get("X-Dewpoint-Thread"), "dewpoint.events.before": "1", "dewpoint.events.after": "1",
	})
	up := r.up.Requests()[0]
	wantAttributes(t, call, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
		"gen_ai.conversation.id": session, "gen_ai.usage.input_tokens": fmt.Sprint(up.PromptTokens), "server.address": "127.0.0.1",
		"http.response.status_code": "200",
	})
	if call.SpanKind != trace.SpanKindClient || server.SpanKind != trace.SpanKindServer || len(call.Events) != 1 || call.Events[0].Name != "first_byte" {
		t.Errorf("kinds %v and %v, events %v", call.SpanKind, server.SpanKind, call.Events)
	}
	want := fmt.Sprintf("00-%s-%s-01", parentTrace, call.SpanContext.SpanID())
	if got := up.Header; got.Get("Traceparent") != want || got.Get("Tracestate") != "vendor=1" || got.Get("Baggage") != "key=value;odd" {
		t.Errorf("upstream got %q, %q, %q; want %s", got.Get("Traceparent"), got.Get("Tracestate"), got.Get("Baggage"), want)
	}
	page := openMetrics(t, r.metrics)
	for _, name := range []string{"overhead_seconds", "upstream_first_byte_seconds", "request_seconds"} {
		if !strings.Contains(page, `# {trace_id="`+parentTrace+`"}`) || !exampled(page, "dewpoint_"+name, parentTrace) {
			t.Errorf("%s has no example", name)
		}
	}
}

func exampled(page, metric, id string) bool {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, metric+"_bucket") && strings.Contains(line, `trace_id="`+id+`"`) {
			return true
		}
	}
	return false
}

// TestContextPassesUntraced: without a tracer, trace headers pass unchanged.
func TestContextPassesUntraced(t *testing.T) {
	r := newRig(t, setup{})
	r.ask(hello, "Traceparent", traceparent, "Tracestate", "vendor=1", "Baggage", "a=b")
	r.ask(hello, "Traceparent", "garbage")
	first, second := r.up.Requests()[0].Header, r.up.Requests()[1].Header
	if first.Get("Traceparent") != traceparent || first.Get("Tracestate") != "vendor=1" || first.Get("Baggage") != "a=b" || second.Get("Traceparent") != "garbage" {
		t.Errorf("upstream got %v and %v", first, second)
	}
}

// TestBrokenContext starts a new trace if the client's context cannot be parsed.
func TestBrokenContext(t *testing.T) {
	all, spans := tracing(t)
	r := newRig(t, setup{spans: spans, models: priced})
	r.ask(hello, "Traceparent", "00-nonsense", "Tracestate", "vendor=1")
	call := all.ended(r, "chat gpt-4o", 1)[0]
	want := fmt.Sprintf("00-%s-%s-01", call.SpanContext.TraceID(), call.SpanContext.SpanID())
	if got := r.up.Requests()[0].Header; got.Get("Traceparent") != want || got.Get("Tracestate") != "" {
		t.Errorf("upstream got %q, %q; want %s", got.Get("Traceparent"), got.Get("Tracestate"), want)
	}
}

// TestSpansOfACondensation: the summariser's call is a child of the condensation's span, with its own usage and no text of the conversation.
func TestSpansOfACondensation(t *testing.T) {
	all, spans := tracing(t)
	counted := &noting{spans: spans}
	r := condensing(t, setup{models: priced, spans: spans, condenser: counted.llm("default")})
	counted.metrics = r.metrics
	secret := "nobody-must-see-this"
	r.ask(messages(append(turns("ships "+secret, 11), say("user", secret))...), "Authorization", "Bearer "+keyMark+"client")
	server, condensed := all.ended(r, "POST "+chatPath, 1)[0], all.ended(r, "condense", 1)[0]
	own := all.ended(r, "chat "+cheapModel, 1)[0]
	if condensed.Parent.SpanID() != server.SpanContext.SpanID() || own.Parent.SpanID() != condensed.SpanContext.SpanID() {
		t.Errorf("the condensation is below %v, the call below %v", condensed.Parent, own.Parent)
	}
	wantAttributes(t, condensed, map[string]string{"dewpoint.condenser": "llm", "dewpoint.reason": "events", "dewpoint.condensed": "true"})
	line := r.line("condensed", 1)
	if usd, _ := line["usd"].(float64); line["trace_id"] != server.SpanContext.TraceID().String() || line["attempts"] != int64(1) || line["made"] != "summary" || usd <= 0 {
		t.Errorf("the log says %v", line)
	}
	for _, req := range r.up.Requests() {
		if req.Summary {
			wantAttributes(t, own, map[string]string{"gen_ai.usage.input_tokens": fmt.Sprint(req.PromptTokens), "gen_ai.operation.name": "chat"})
		}
	}
	for _, s := range all.exporter.GetSpans() {
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, secret) || strings.Contains(text, keyMark) || strings.Contains(text, "Understood") {
			t.Errorf("content is in a span: %s", text)
		}
	}
}

// TestSpansOfFailures has requests fail in every way.
func TestSpansOfFailures(t *testing.T) {
	for name, c := range map[string]struct {
		setup    setup
		answer   fakeupstream.Answer
		body     string
		server   string // error.type
		failed   bool   // by us or by upstream, not by the client
		upstream string // error.type, none if there was no call
	}{
		"refused upstream": {answer: fakeupstream.RateLimited("1"), server: "upstream_4xx", upstream: "429"},
		"failed upstream":  {answer: fakeupstream.ServerError(), server: "upstream_5xx", failed: true, upstream: "500"},
		"broke off":        {answer: fakeupstream.Answer{Content: "some words", Fault: fakeupstream.Fault{Break: fakeupstream.BreakClose, BreakAfter: 1}}, body: helloing, server: "upstream_broken", failed: true, upstream: "upstream_broken"},
		"unreachable":      {setup: setup{base: "http://127.0.0.1:1/v1"}, server: "upstream_unreachable", failed: true, upstream: "upstream_unreachable"},
		"not a request":    {body: `{"model":"gpt-4o",` + hello[1:], server: "duplicate_key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, spans := tracing(t)
			c.setup.spans, c.setup.models = spans, priced
			r := newRig(t, c.setup)
			if r.up != nil {
				r.up.Script(c.answer)
			}
			if c.body == "" {
				c.body = hello
			}
			resp := r.post(c.body)
			_, _ = io.ReadAll(resp.Body) // it may break off
			resp.Body.Close()
			server := all.ended(r, "POST "+chatPath, 1)[0]
			wantAttributes(t, server, map[string]string{"error.type": c.server})
			if (server.Status.Code == codes.Error) != c.failed {
				t.Errorf("status %v", server.Status)
			}
			if c.upstream != "" {
				call := all.ended(r, "chat gpt-4o", 1)[0]
				wantAttributes(t, call, map[string]string{"error.type": c.upstream})
			}
		})
	}
}

// TestSpansOfOtherPaths: spans of requests that are passed through have no model and no path.
func TestSpansOfOtherPaths(t *testing.T) {
	all, spans := tracing(t)
	r := newRig(t, setup{spans: spans})
	resp, err := r.client.Do(r.request(guard(t), http.MethodGet, "/v1/models/secret-name?secret=1", ""))
	must(t, err)
	drain(t, resp)
	all.ended(r, "GET", 2)
	for _, s := range all.exporter.GetSpans() {
		if strings.Contains(fmt.Sprintf("%+v", s), "secret") {
			t.Errorf("%+v", s)
		}
	}
}
