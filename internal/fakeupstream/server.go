package fakeupstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options says how strict the server is and what it answers. The zero value is a server without limits that accepts any
// key and any model.
type Options struct {
	APIKeys []string // accepted; none: any
	Models  []string // known; none: any
	Strict  bool     // ValidateStrict instead of Validate

	Alternates bool // users and assistants have to take turns, and an assistant to speak before a user after results

	ContextWindow int                   // tokens of prompt and reserved output; 0 is no limit
	Windows       map[string]int        // the same for single models; the list of models tells them, as vLLM does
	MaxOutput     int                   // tokens that may be asked for; 0 is no limit
	CountTokens   func([]byte) int      // of one raw message, or of the raw tools; nil: a quarter of the bytes
	ChunkRunes    int                   // characters of text a streamed chunk; 0 is 12
	Reply         func(*Request) Answer // when no answer is scripted; nil: a short fixed text

	SummariserModels []string              // requests for these models are a summariser's,
	IsSummary        func(*Request) bool   // and those that it picks; nil picks none
	Summarise        func(*Request) Answer // answers them; nil: Extract

	Seals    Seal             // answers carry sealed reasoning, and what comes back is judged; empty: they do not
	SealWhen func(n int) bool // whether the n-th answer, from 0 on, carries any; nil: each

	Keep int // requests kept by the record, the newest; 0 is all
}

// Server is the fake upstream. It is safe for concurrent use. Answers are made without a clock or chance: equal requests
// in equal order get equal answers.
type Server struct {
	options Options
	record  *recorder
	cache   prefixCache
	quit    chan struct{} // closed by Close: releases what a fault holds
	http    *http.Server

	mu       sync.Mutex
	queue    []Answer
	sealed   seals
	kept     stored
	unable   bool // it knows no compaction
	listener net.Listener
	closed   bool
	work     sync.WaitGroup // the serve loop, the connections and the handlers; added to under mu, unless closed
}

// New returns a server that does not listen yet: call Start, or serve it as an http.Handler.
func New(options Options) *Server {
	s := &Server{options: options.withDefaults(), record: newRecorder(options.Keep), quit: make(chan struct{})}
	s.http = &http.Server{Handler: s, ConnState: s.trackConnection, ReadHeaderTimeout: time.Minute}
	return s
}

func (o Options) withDefaults() Options {
	if o.CountTokens == nil {
		o.CountTokens = func(raw []byte) int { return len(raw) / 4 }
	}
	if o.ChunkRunes <= 0 {
		o.ChunkRunes = 12
	}
	if o.Reply == nil {
		o.Reply = func(*Request) Answer { return Answer{Content: "Understood."} }
	}
	if o.Summarise == nil {
		o.Summarise = Extract
	}
	return o
}

// Start listens on a free port of the loopback interface and serves there until Close.
func (s *Server) Start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start fake upstream: %w", err)
	}
	if !s.begin() {
		_ = listener.Close()
		return fmt.Errorf("start fake upstream: %w", http.ErrServerClosed)
	}
	s.mu.Lock()
	s.listener = listener
	s.mu.Unlock()
	go func() {
		defer s.work.Done()
		_ = s.http.Serve(listener) // always ErrServerClosed: only Close ends it
	}()
	return nil
}

// URL returns the root, such as http://127.0.0.1:4000, or "" before Start. The API is there and under /v1.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close releases every held answer, closes the connections, and waits until all goroutines have ended. Requests that
// it cuts off do not count as cancelled. It may be called again.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.quit)
		_ = s.http.Close()
	}
	s.work.Wait()
}

// DropCache empties the simulated prompt cache: all prompts are cold.
func (s *Server) DropCache() { s.cache.drop() }

// RefuseCompaction has the Responses API and the Messages API know no compaction, and the latter no context_management, as most servers do not. Call it before Start.
func (s *Server) RefuseCompaction() { s.unable = true }

// begin adds a piece of work for Close to wait for; false after Close.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// trackConnection makes Close wait for the goroutine of each connection.
func (s *Server) trackConnection(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.work.Add(1) // the serve loop is still counted, so the counter is not zero
	case http.StateClosed, http.StateHijacked:
		s.work.Done()
	}
}

// ServeHTTP serves the API at / and at /v1.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		http.Error(w, "the server is closed", http.StatusServiceUnavailable)
		return
	}
	defer s.work.Done()
	body, err := io.ReadAll(r.Body)
	top := asObject(body)
	x := &exchange{server: s, w: w, r: r, top: top, req: newRequest(r, body, top)}
	if r.UserAgent() != asker { // what is served may be asked at any time: the record is of what clients sent
		x.req.Summary = err == nil && s.options.summarises(x.req) // before it can be seen
		s.record.add(x.req)
		defer x.end()
	}
	if err != nil {
		x.left()
		return
	}
	x.enter(PhaseHeaders)
	stop := context.AfterFunc(r.Context(), x.left)
	defer stop()
	x.route()
}

// asker is the user agent of the proxy's own questions about models.
const asker = "dewpoint"

// newRequest reads of the body what can be read; whether it is right is judged later.
func newRequest(r *http.Request, body []byte, top object) *Request {
	history := asArray(top["messages"])
	if strings.Contains(r.URL.Path, "/responses") {
		if history = asArray(top["input"]); kindOf(top["input"]) == kindString {
			history = []json.RawMessage{joinObject([]member{{"role", mustJSON("user")}, {"content", top["input"]}})}
		}
	}
	return &Request{
		Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body,
		Model: asString(top["model"]), Stream: isTrue(top["stream"]), Messages: history, Tools: top["tools"],
		Phase: PhaseUpload,
	}
}

// exchange is one request on its way through the server.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	top    object   // the body; nil if it is not an object
	req    *Request // in the record: change it through record.change only
}

func (x *exchange) enter(p Phase) {
	x.server.record.change(func() { x.req.Phase = p })
}

// end runs when the handler returns, after the client's leaving too: the notice of it may come later than the return.
func (x *exchange) end() {
	if x.r.Context().Err() != nil {
		x.left()
	}
	x.server.record.end(x.req)
}

// left notes that the client went away, unless it is the server that closes.
func (x *exchange) left() {
	select {
	case <-x.server.quit:
	default:
		x.server.record.cancel(x.req)
	}
}

func (x *exchange) route() {
	path := strings.TrimPrefix(x.r.URL.Path, "/v1")
	model, single := strings.CutPrefix(path, "/models/")
	switch {
	case path == "/chat/completions":
		x.only(http.MethodPost, x.chat)
	case path == "/messages":
		x.anthropic(x.messages)
	case path == "/messages/count_tokens":
		x.anthropic(x.countTokens)
	case path == "/responses":
		x.only(http.MethodPost, x.responses)
	case path == "/responses/input_tokens":
		x.only(http.MethodPost, x.inputTokens)
	case path == "/responses/compact":
		x.only(http.MethodPost, x.compact)
	case path == "/embeddings":
		x.only(http.MethodPost, x.embeddings)
	case path == "/models":
		x.only(http.MethodGet, x.models)
	case single:
		x.only(http.MethodGet, func() { x.model(model) })
	default:
		x.refuse(unknownURL(x.r))
	}
}

// only runs the handler for requests of that method and with a good key.
func (x *exchange) only(method string, handle func()) {
	if x.r.Method != method {
		x.refuse(wrongMethod(x.r))
		return
	}
	if err := checkKey(x.r.Header, x.server.options.APIKeys); err != nil {
		x.refuse(err)
		return
	}
	handle()
}

// anthropic runs the handler for requests of Anthropic's API with a good key.
func (x *exchange) anthropic(handle func()) {
	if x.r.Method != http.MethodPost {
		x.refuseAnthropic(&APIError{http.StatusMethodNotAllowed, "Method Not Allowed", invalidRequest, "", ""})
		return
	}
	if err := checkAnthropicKey(x.r.Header, x.server.options.APIKeys); err != nil {
		x.refuseAnthropic(err)
		return
	}
	handle()
}

// refuse answers with an error of the server's own.
func (x *exchange) refuse(e *APIError) {
	x.server.record.change(func() { x.req.Refused, x.req.Summary = e, false })
	x.play(Answer{Error: e})
}
