package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// clearOTel clears all OpenTelemetry variables for a test.
func clearOTel(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// running is an app in front of a fake upstream.
type running struct {
	*App
	t  *testing.T
	up *fakeupstream.Server
}

func run(t *testing.T, log *zap.Logger, change func(*config.Config), options ...Options) *running {
	t.Helper()
	up := fakeupstream.New(fakeupstream.Options{SummariserModels: []string{"gpt-4o-mini"}})
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Upstream.BaseURL = up.URL() + "/v1"
	cfg.Store.Path, cfg.Store.Timeout = filepath.Join(t.TempDir(), "dewpoint.db"), time.Minute
	cfg.LLMs["cheap"] = config.LLM{Model: "gpt-4o-mini"}
	cfg.Condenser = catalogue.Default(catalogue.TypeLLM)
	cfg.Condenser.LLMConfig, cfg.Condenser.MaxSize, cfg.Condenser.MinTokens, cfg.Condenser.KeepFirst = "cheap", 10, 0, 1
	cfg.Condenser.Wait, cfg.Condenser.BackgroundAt = catalogue.WaitDeadline, 0
	if change != nil {
		change(cfg)
	}
	a, err := New(cfg, log, append(options, Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	t.Cleanup(func() { shut(t, a) })
	return &running{a, t, up}
}

func shut(t *testing.T, a *App) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// talk sends a conversation of n messages.
func (r *running) talk(n int, header ...string) *http.Response {
	r.t.Helper()
	var b strings.Builder
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, `,{"role":%q,"content":"%d %s"}`, role, i, strings.Repeat("and so on ", 40))
	}
	body := `{"model":"gpt-4o","messages":[` + b.String()[1:] + `]}`
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.Addr()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	return resp
}

func (r *running) metrics() string {
	r.t.Helper()
	resp, err := http.Get("http://" + r.AdminAddr() + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(page)
}

// TestTracesGoOut checks that the spans of a request and of its summariser call reach the collector named in the environment.
func TestTracesGoOut(t *testing.T) {
	clearOTel(t)
	to := newReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%20b, authorization = Bearer%20k")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_SERVICE_NAME", "front")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	r := run(t, zap.NewNop(), nil, Options{Traced: true, Version: "1.2.3", Revision: "abc"})
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	r.talk(11, "Traceparent", "00-"+trace+"-"+parent+"-01")
	shut(t, r.App) // flushes the remaining spans
	spans, resource := to.spans()
	if resource["service.name"] != "front" || resource["service.version"] != "1.2.3" || resource["deployment.environment.name"] != "test" {
		t.Errorf("resource %v", resource)
	}
	below := map[string]string{
		"POST /v1/chat/completions": parent, "resolve": "POST /v1/chat/completions", "condense": "POST /v1/chat/completions",
		"chat gpt-4o-mini": "condense", "chat gpt-4o": "POST /v1/chat/completions",
	}
	for name, over := range below {
		if len(spans[name]) != 1 {
			t.Fatalf("%d spans %q in %v", len(spans[name]), name, spans)
		}
		s := spans[name][0]
		if of := spans[over]; of != nil {
			over = fmt.Sprintf("%x", of[0].SpanId)
		}
		if got := fmt.Sprintf("%x", s.ParentSpanId); got != over || fmt.Sprintf("%x", s.TraceId) != trace {
			t.Errorf("%s is below %s, want %s", name, got, over)
		}
	}
	for _, req := range r.up.Requests() {
		name := "chat gpt-4o"
		if req.Summary {
			name = "chat gpt-4o-mini"
		}
		if got, want := req.Header.Get("Traceparent"), fmt.Sprintf("00-%s-%x-01", trace, spans[name][0].SpanId); got != want {
			t.Errorf("%s got %s, want %s", name, got, want)
		}
	}
	for _, h := range to.headers {
		if h.Get("X-Tenant") != "a b" || h.Get("Authorization") != "Bearer k" {
			t.Errorf("headers %v", h)
		}
	}
}

// TestTracesAreOff checks that nothing is traced unless both the environment and the options ask for it.
func TestTracesAreOff(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing set": {},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "x", "OTEL_SDK_DISABLED": "TRUE"},
		"none":        {"OTEL_EXPORTER_OTLP_ENDPOINT": "x", "OTEL_TRACES_EXPORTER": "none"},
		"not looked":  {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			clearOTel(t)
			for key, value := range env {
				t.Setenv(key, value)
			}
			r := run(t, zap.NewNop(), nil, Options{Traced: name != "not looked"})
			if r.calls.spans != nil {
				t.Error("there is a tracer")
			}
			const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			r.talk(1, "Traceparent", given)
			if got := r.up.Requests()[0].Header.Get("Traceparent"); got != given {
				t.Errorf("upstream got %s", got)
			}
		})
	}
}

func TestInvalidTraceSettings(t *testing.T) {
	clearOTel(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	cfg := config.Default()
	cfg.Store.Path = filepath.Join(t.TempDir(), "dewpoint.db")
	_, err := New(cfg, zap.NewNop(), Options{Traced: true})
	if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_PROTOCOL") || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("error %v", err)
	}
}

// TestCollectorsAway checks that requests are served if the collector refuses spans or cannot be reached.
func TestCollectorsAway(t *testing.T) {
	quick.Skip(t)
	refusing := newReceiver(t)
	refusing.status = http.StatusForbidden
	for name, endpoint := range map[string]string{"refusing": refusing.URL, "not there": "http://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			clearOTel(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=verysecret")
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
			core, logs := observer.New(zap.DebugLevel)
			r := run(t, zap.New(core), nil, Options{Traced: true})
			for end := time.Now().Add(time.Minute); !strings.Contains(r.metrics(), "dewpoint_trace_export_failures_total 2"); {
				if r.talk(1); time.Now().After(end) {
					t.Fatalf("no failure is counted\n%s", r.metrics())
				}
			}
			shut(t, r.App)
			if n := logs.FilterMessage("traces are lost").Len(); n != 1 {
				t.Errorf("logged %d times", n)
			}
			for _, entry := range logs.All() {
				if strings.Contains(fmt.Sprint(entry), "verysecret") {
					t.Errorf("logged: %v", entry)
				}
			}
		})
	}
}

// TestStuckStandardError checks that requests are served while the log is not read. A pipe holds 64 KiB, and the test logs many times that.
func TestStuckStandardError(t *testing.T) {
	quick.Skip(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	log, err := NewLogger("info", write, JSON)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, log.Logger, nil)
	log.OnLost(r.LinesLost)
	filler := strings.Repeat("a", 1<<20)
	for range 2 * maxQueuedBytes >> 20 {
		log.Warn("fills the pipe, and all that may wait", zap.String("filler", filler))
	}
	for range 20 {
		r.talk(1)
	}
	if page := r.metrics(); strings.Contains(page, `dewpoint_log_lines_dropped_total{cause="full"} 0`) || !strings.Contains(page, `dewpoint_log_lines_dropped_total{cause="full"}`) {
		t.Error("no lost line is counted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log.Close(ctx) // gives up
	write.Close()
}

// TestLogIsWhole checks that every line is written by the time the log is closed.
func TestLogIsWhole(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger("info", &out, JSON)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, log.Logger, func(c *config.Config) { c.LogContent = true })
	log.OnLost(r.LinesLost)
	r.talk(1)
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	shut(t, r.App)
	log.Close(t.Context())
	text := out.String()
	for _, part := range []string{`"msg":"log_content is set: `, `"msg":"request","request_id":"`, `"tenant":"default","dialect":"chat","model":"gpt-4o","status":200`, `"msg":"content"`} {
		if strings.Count(text, part) != 1 {
			t.Errorf("%s is there %d times in\n%s", part, strings.Count(text, part), text)
		}
	}
}

// TestMetricsOfTheApp checks metrics that need the whole app.
func TestMetricsOfTheApp(t *testing.T) {
	r := run(t, zap.NewNop(), nil, Options{Version: "1.2.3", Revision: "abc"})
	r.talk(11)
	bad := *r.config
	bad.Tenants = []config.Tenant{{Name: "a", APIKeys: []config.APIKey{{}}}}
	if err := r.Reload(&bad); err == nil {
		t.Error("a tenant without a key was taken")
	}
	page := r.metrics()
	for _, part := range []string{
		`revision="abc",version="1.2.3"} 1`, "dewpoint_config_reload_success 0", `dewpoint_summariser_seconds_count{outcome="replied",tenant="default"} 1`,
		`dewpoint_store_seconds_count{op="find"}`, `dewpoint_requests_total{code="",dialect="chat",model="gpt-4o",status="2xx",tenant="default"} 1`,
		`dewpoint_spent_usd_total{kind="summariser",model="gpt-4o-mini",tenant="default"} `, "dewpoint_bytes_in_flight_limit 5.36870912e+08",
		"dewpoint_store_degraded 0", "dewpoint_store_bytes ", "dewpoint_store_bytes_limit 4.294967296e+09", "dewpoint_store_file_bytes ",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("no %s in\n%s", part, page)
		}
	}
	if err := r.Reload(r.config); err != nil || !strings.Contains(r.metrics(), "dewpoint_config_reload_success 1") {
		t.Errorf("reload: %v", err)
	}
	hash := fmt.Sprintf("dewpoint_config_hash %v\n", float64(r.config.Hash()))
	if !strings.Contains(r.metrics(), hash) {
		t.Errorf("no %s in\n%s", hash, r.metrics())
	}
	other := *r.config
	other.Notify = !other.Notify
	if err := r.Reload(&other); err != nil || strings.Contains(r.metrics(), hash) {
		t.Errorf("another configuration: %v, and still %s", err, hash)
	}
}

// TestReloadSaysWhatChanged checks that each reload logs the names of what changed, without values, and that pending restarts
// are counted until the change is undone.
func TestReloadSaysWhatChanged(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	key := func(c string) []config.APIKey { return []config.APIKey{{SHA256: strings.Repeat(c, 64)}} }
	r := run(t, zap.New(core), func(c *config.Config) {
		c.Tenants = []config.Tenant{{Name: "a", APIKeys: key("a")}, {Name: "b", APIKeys: key("b")}, {Name: "c", APIKeys: key("c")}}
	})
	changed := *r.config
	changed.Tenants = []config.Tenant{{Name: "b", Key: "tenants.b", APIKeys: key("b")}, {Name: "c", APIKeys: key("1")}, {Name: "d", APIKeys: key("d")}}
	changed.LLMs = map[string]config.LLM{"cheap": {Model: "gpt-4o-mini", APIKey: "very-secret"}}
	changed.Admin.Token, changed.TenantsDir, changed.TenantsTrusted = "another-secret", "/etc/tenants", true
	live := changed
	live.Admin = r.config.Admin
	for _, step := range []struct {
		config  *config.Config
		want    map[string]any
		pending string
	}{
		{&changed, map[string]any{
			"tenants": int64(3), "keys_changed": []any{"admin", "llms", "tenants_dir", "tenants_trusted"}, "tenants_added": []any{"d"}, "tenants_removed": []any{"a"},
			"tenants_changed": []any{"c"}, "at_next_start": []any{"admin"},
		}, "1"},
		{&changed, map[string]any{"tenants": int64(3), "at_next_start": []any{"admin"}}, "1"},
		{&live, map[string]any{"tenants": int64(3), "keys_changed": []any{"admin"}}, "0"},
		{&live, map[string]any{"tenants": int64(3)}, "0"},
	} {
		if err := r.Reload(step.config); err != nil {
			t.Fatal(err)
		}
		said := lines.FilterMessage("configuration reloaded").All()
		lines.TakeAll()
		if len(said) != 1 || !reflect.DeepEqual(said[0].ContextMap(), step.want) {
			t.Errorf("the log has %+v, want %v", said, step.want)
		}
		if page := r.metrics(); !strings.Contains(page, "\ndewpoint_config_restart_pending "+step.pending+"\n") {
			t.Errorf("%s is not what is pending in\n%s", step.pending, page)
		}
	}
}

// TestReloadIgnoresMovedWarnings: a start logs each warning, and a file in which only their lines have changed is not loaded again.
func TestReloadIgnoresMovedWarnings(t *testing.T) {
	core, lines := observer.New(zap.WarnLevel)
	r := run(t, zap.New(core), func(c *config.Config) {
		c.Warnings = config.Problems{{Key: "limits.max_body", Message: "is 64 bytes", Origin: "line 1"}}
	})
	want := map[string]any{"key": "limits.max_body", "warning": "is 64 bytes", "origin": "line 1"}
	if said := lines.FilterMessage("configuration warning").All(); len(said) != 1 || !reflect.DeepEqual(said[0].ContextMap(), want) {
		t.Errorf("the log has %+v", said)
	}
	moved := *r.config
	moved.Warnings = config.Problems{{Key: "limits.max_body", Message: "is 64 bytes", Origin: "line 2"}}
	if !r.isLoaded(&moved) {
		t.Error("it would be loaded again")
	}
	moved.Notify = !moved.Notify
	if r.isLoaded(&moved) {
		t.Error("a change is ignored")
	}
}
