package findings_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
)

// message is the message that the tests send.
func message() *findings.Message {
	return &findings.Message{
		ID: "t-9-1", Tenant: "acme", Session: "s", Thread: "t", Time: time.Unix(1_700_000_000, 0).UTC(), Reason: "tokens", Condenser: "llm", Model: "m",
		Findings: []record.Finding{{Kind: record.Decision, Section: "DECISIONS", Text: "CONTENT {id}\nof two lines"}, {Kind: record.Task, Section: "NEXT_STEP", Text: "go on"}},
	}
}

const messageJSON = `{"id":"t-9-1","tenant":"acme","session":"s","thread":"t","time":"2023-11-14T22:13:20Z","reason":"tokens","condenser":"llm","model":"m",` +
	`"findings":[{"kind":"decision","section":"DECISIONS","text":"CONTENT {id}\nof two lines"},{"kind":"task","section":"NEXT_STEP","text":"go on"}]}`

// send opens a sink and sends it a message.
func send(t *testing.T, s findings.Sink) error {
	t.Helper()
	conn, err := s.Open(t.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Send(t.Context(), message())
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "findings.jsonl")
	must(t, send(t, findings.File{Path: path}))
	must(t, send(t, findings.File{Path: path}))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(`{"id":"cut o`)
	must(t, err)
	must(t, file.Close())
	must(t, send(t, findings.File{Path: path}))
	got, err := os.ReadFile(path)
	must(t, err)
	line := messageJSON + "\n"
	if want := line + line + `{"id":"cut o` + "\n" + line; string(got) != want {
		t.Errorf("got %s", got)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may %v", info.Mode())
	}
	if err := send(t, findings.File{Path: t.TempDir()}); err == nil {
		t.Error("a folder is written to")
	}
}

// TestSignature checks the example of the specification.
func TestSignature(t *testing.T) {
	for secret, want := range map[string]string{
		"whsec_plJ3nmyCDGBKInavdOK15jsl": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
		"":                               "",
	} {
		h := http.Header{}
		findings.Sign(h, secret, "msg_loFOjxBNrRLzqYUf", time.Unix(1731705121, 0), []byte(`{"event_type":"ping","data":{"success":true}}`))
		if h.Get("Webhook-Signature") != want || h.Get("Webhook-Id") != "msg_loFOjxBNrRLzqYUf" || h.Get("Webhook-Timestamp") != "1731705121" {
			t.Errorf("got %v", h)
		}
	}
}

func TestWebhook(t *testing.T) {
	status, elsewhere := http.StatusAccepted, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/elsewhere" {
			elsewhere++
			return
		}
		want := http.Header{}
		seconds, err := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
		if err != nil {
			t.Error(err)
		}
		findings.Sign(want, "SECRET", "t-9-1", time.Unix(seconds, 0), body)
		if string(body) != messageJSON || r.Header.Get("Webhook-Signature") != want.Get("Webhook-Signature") {
			t.Errorf("got %v %s", r.Header, body)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	defer server.Close()
	hook := findings.Webhook{Transport: http.DefaultTransport, URL: server.URL + "/hook?token=SECRET", Secret: "SECRET"}
	for code, want := range map[int]string{
		200: "ok", 202: "ok", 204: "ok", 307: "fails", 400: "refused", 401: "refused", 404: "refused", 408: "fails", 429: "fails", 500: "fails", 503: "fails",
	} {
		status = code
		if got := verdict(t, send(t, hook)); got != want {
			t.Errorf("status %d: %s, want %s", code, got, want)
		}
	}
	if elsewhere > 0 {
		t.Error("a redirection was followed")
	}
	server.Close()
	if got := verdict(t, send(t, hook)); got != "fails" {
		t.Errorf("no server: %s", got)
	}
}

// verdict classifies an error in one word. It fails the test if the error contains part of the message, or a secret.
func verdict(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	if strings.Contains(err.Error(), "CONTENT") || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("an error shows too much: %v", err)
	}
	if _, refused := errors.AsType[*findings.RefusedError](err); refused {
		return "refused"
	}
	return "fails"
}

// remembering is an MCP server like the reference server. It fails if an argument asks for it.
func remembering(took func(arguments map[string]any)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "memory", Version: "1"}, nil)
	type input struct {
		Entities []map[string]any `json:"entities"`
		How      string           `json:"how,omitempty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "create_entities"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		if in.How == "fail" {
			return nil, nil, errors.New("no room for CONTENT")
		}
		took(map[string]any{"entities": in.Entities})
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

// entities are the default arguments for the reference server.
var entities = map[string]any{"entities": []any{map[string]any{
	"name": "t-9-1", "entityType": "findings", "observations": []any{"decision (DECISIONS): CONTENT {id}\nof two lines", "task (NEXT_STEP): go on"},
}}}

// TestMCP: the defaults suit the reference server, and a refused message is distinguished from a failing server.
func TestMCP(t *testing.T) {
	var got map[string]any
	server := remembering(func(arguments map[string]any) {
		text, err := json.Marshal(arguments)
		if err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Error(err)
		}
	})
	front := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer front.Close()
	sink := findings.MCP{URL: front.URL, Transport: http.DefaultTransport, Tool: findings.DefaultTool, Arguments: findings.DefaultArguments}
	must(t, send(t, sink))
	if !reflect.DeepEqual(got, entities) {
		t.Errorf("got %v", got)
	}
	sink.Arguments = `{"entities": [], "how": "fail"}`
	if got := verdict(t, send(t, sink)); got != "refused" {
		t.Errorf("a tool that fails: %s", got)
	}
	sink.Tool = "forget"
	if got := verdict(t, send(t, sink)); got != "refused" {
		t.Errorf("a tool that is not there: %s", got)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	sink.URL = other.URL
	if got := verdict(t, send(t, sink)); got != "fails" {
		t.Errorf("a server that does not speak MCP: %s", got)
	}
}

// busyTransport records whether more than 8 requests are made at a time. A request ends when its answer's body is closed.
type busyTransport struct {
	open     atomic.Int64
	exceeded atomic.Bool
}

func (b *busyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.open.Add(1) > 8 {
		b.exceeded.Store(true)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.open.Add(-1)
		return nil, err
	}
	resp.Body = countedBody{resp.Body, sync.OnceFunc(func() { b.open.Add(-1) })}
	return resp, nil
}

type countedBody struct {
	io.ReadCloser
	closed func()
}

func (b countedBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// TestHostileMCP: no answer or notification of a server ends the process, and each takes a bounded amount of memory.
func TestHostileMCP(t *testing.T) {
	const complete = `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}`
	for name, answer := range map[string]string{
		"input required": `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"a":null}}}`,
		"no result":      `{"jsonrpc":"2.0","id":ID,"result":null}`,
		"endless":        "",
		"pings":          "pings",
	} {
		t.Run(name, func(t *testing.T) {
			server := remembering(func(map[string]any) {})
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
			var sent atomic.Int64
			hold := make(chan struct{})
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				var request struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				_ = json.Unmarshal(body, &request)
				switch {
				case r.Method == http.MethodPost && request.Method == "": // an answer to a ping, which the server leaves open
					<-hold
				case request.Method != "tools/call":
					r.Body = io.NopCloser(bytes.NewReader(body))
					handler.ServeHTTP(w, r)
				case answer == "":
					w.Header().Set("Content-Type", "application/json")
					for err == nil && sent.Load() < 64<<20 {
						var n int
						n, err = w.Write(bytes.Repeat([]byte(" "), 1<<20))
						sent.Add(int64(n))
					}
				case answer == "pings":
					w.Header().Set("Content-Type", "text/event-stream")
					for i := range 200 {
						_, _ = fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"%d\",\"method\":\"ping\"}\n\n", i)
					}
				default:
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", complete, strings.ReplaceAll(answer, "ID", string(request.ID)))
				}
			}))
			defer front.Close()
			transport := &busyTransport{}
			sink := findings.MCP{URL: front.URL, Transport: transport, Tool: findings.DefaultTool, Arguments: findings.DefaultArguments}
			conn, err := sink.Open(t.Context())
			must(t, err)
			err = conn.Send(t.Context(), message())
			if transport.exceeded.Load() {
				t.Error("more than 8 requests at a time")
			}
			close(hold)
			conn.Close()
			if got := verdict(t, err); got == "ok" && name != "no result" {
				t.Error("the answer was taken")
			}
			if sent.Load() == 64<<20 {
				t.Error("all of an endless answer was read")
			}
		})
	}
}

func TestMCPOverHTTP(t *testing.T) {
	var got map[string]any
	keys := map[string]bool{}
	server := remembering(func(arguments map[string]any) { got = arguments })
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	breaks := func(http.ResponseWriter) {}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys[r.Header.Get("Authorization")] = true
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte("tools/call")) {
			breaks(w)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	defer front.Close()
	sink := findings.MCP{
		URL: front.URL + "/mcp?token=SECRET", Transport: http.DefaultTransport, Key: "key", Tool: findings.DefaultTool,
		Arguments: `{"entities": [{"name": "{tenant}/{session}/{thread}", "at": "{time}", "all": "- {findings}", "n": 1}]}`,
	}
	must(t, send(t, sink))
	want := map[string]any{"entities": []map[string]any{{
		"name": "acme/s/t", "at": "2023-11-14T22:13:20Z", "all": "- decision (DECISIONS): CONTENT {id}\nof two lines\ntask (NEXT_STEP): go on", "n": 1.0,
	}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if want := map[string]bool{"Bearer key": true}; !maps.Equal(keys, want) {
		t.Errorf("keys %v", keys)
	}
	for name, how := range map[string]func(http.ResponseWriter){
		"a broken connection":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"an overloaded server": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		breaks = how
		if got := verdict(t, send(t, sink)); got != "fails" {
			t.Errorf("%s: %s", name, got)
		}
	}
	front.Close()
	if got := verdict(t, send(t, sink)); got != "fails" {
		t.Errorf("no server: %s", got)
	}
}
