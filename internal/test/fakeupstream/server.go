package fakeupstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configures the answers and the strictness of a server. The zero value accepts any key and any model and has no limits.
type Options struct {
	APIKeys []string // accepted keys; none: any key is accepted
	Models  []string // known models; none: any model is known
	Strict  bool     // refuse unknown fields, and tool call IDs of more than 40 characters, as OpenAI does and compatible servers do not

	Alternates bool // users and assistants must take turns, and an assistant must speak between tool results and a user

	ContextWindow int                   // tokens of prompt and reserved output; 0 is no limit
	Windows       map[string]int        // ContextWindow of single models; the list of models reports them, as vLLM does
	MaxOutput     int                   // largest output that a request may reserve, in tokens; 0 is no limit
	CountTokens   func([]byte) int      // of one raw message, or of the raw tools; nil: a quarter of the bytes
	ChunkRunes    int                   // characters of text in a streamed chunk; 0 is 12
	Reply         func(*Request) Answer // used when the script is empty; nil: a short fixed text

	SummariserModels []string              // requests for these models go to the summariser
	IsSummary        func(*Request) bool   // picks other requests for the summariser; nil picks none
	Summarise        func(*Request) Answer // answers as the summariser; nil: Extract

	ByAuthor bool             // prefix-bound Seals prove who made the reasoning and not what stood before it, as older Claude models' do
	Seals    Seal             // format of the sealed reasoning in answers, which is checked when it comes back; "": none
	SealWhen func(n int) bool // whether the n-th answer, from 0 on, is sealed; nil: each

	Keep int // number of requests to keep in the record, the newest; 0 is all
}

// Server is the fake upstream. It is safe for concurrent use. It uses no clock and no randomness: the same requests in the same
// order get the same answers.
type Server struct {
	options Options
	record  *recorder
	cache   *prefixCache
	running context.Context // ends at Close, which ends every delay of an answer
	quit    context.CancelFunc
	http    *http.Server

	mu     sync.Mutex
	queue  []Answer
	kept   memory
	unable bool           // no support for compaction
	url    string         // "" before Start
	work   sync.WaitGroup // the serve loop and the connections
}

// New returns a server that does not listen yet: call Start, or serve it as an http.Handler.
func New(options Options) *Server {
	s := &Server{
		options: options.withDefaults(), cache: newCache(cacheCapacity), record: &recorder{keep: options.Keep},
		kept: memory{0, map[string]bool{}, map[string][]value{}, map[string]value{}, map[string]string{}},
	}
	s.record.changed.L = &s.record.mu
	s.running, s.quit = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s, ConnState: s.trackConnection, ReadHeaderTimeout: time.Minute}
	return s
}

func (o Options) withDefaults() Options {
	if o.CountTokens == nil {
		o.CountTokens = func(raw []byte) int { return len(raw) / 4 }
	}
	o.ChunkRunes = cmp.Or(o.ChunkRunes, 12)
	if o.Reply == nil {
		o.Reply = func(*Request) Answer { return Answer{Content: "Understood."} }
	}
	if o.Summarise == nil {
		o.Summarise = Extract
	}
	return o
}

// Start listens on a free loopback port and serves there until Close.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running.Err() != nil {
		return fmt.Errorf("start fake upstream: %w", http.ErrServerClosed)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start fake upstream: %w", err)
	}
	s.url = "http://" + listener.Addr().String()
	s.work.Go(func() {
		_ = s.http.Serve(listener) // always ErrServerClosed: only Close ends it
	})
	return nil
}

// URL returns the root URL, such as http://127.0.0.1:4000, or "" before Start. The API is served there and under /v1.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Close ends every delay of an answer, closes the connections, and waits for their goroutines. Requests that it cuts off do not count as
// cancelled. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock() // a Start that has begun is counted in s.work
	s.quit()
	s.mu.Unlock()
	_ = s.http.Close()
	s.work.Wait()
}

// DropCache empties the simulated prompt cache.
func (s *Server) DropCache() { s.cache.drop() }

// RefuseCompaction removes compaction and context management, which most compatible servers do not have. Call it before Start.
func (s *Server) RefuseCompaction() { s.unable = true }

// trackConnection makes Close wait for the goroutine of each connection.
func (s *Server) trackConnection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.work.Add(1) // the serve loop is still counted, so the counter is not zero
	case http.StateClosed, http.StateHijacked:
		s.work.Done()
	}
}

// ServeHTTP serves the API at / and at /v1.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	x := &exchange{server: s, w: w, r: r, top: parse(body)}
	x.decode(body)
	if r.UserAgent() != "dewpoint" { // the record has only what clients sent; the proxy may ask about models at any time
		x.req.Summary = err == nil && x.summarises() // set before others can see the request
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

// decode takes from the body what can be decoded. The rules are checked later.
func (x *exchange) decode(body []byte) {
	r, top := x.r, x.top
	x.history = top.at("messages").elements
	if strings.Contains(r.URL.Path, "/responses") {
		input := top.at("input")
		if x.history = input.elements; input.kind == kindString {
			x.history = []value{parse(build("role", "user", "content", input.raw))}
		}
	}
	x.req = &Request{
		Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body, Phase: PhaseUpload,
		Model: top.at("model").text, Stream: top.at("stream").isTrue(), Messages: raws(x.history), Tools: top.at("tools").raw,
	}
	if call, is := x.speaksGemini(); is {
		x.decodeGemini(call)
	}
}

// exchange is the handling of one request.
type exchange struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	top     value    // the body
	history []value  // messages, or the items of the input
	req     *Request // shared with the record: change it only through record.change
}

func (x *exchange) enter(p Phase) {
	x.server.record.change(func() { x.req.Phase = p })
}

// end runs when the handler returns. It checks whether the client has left, since the notification may arrive after the return.
func (x *exchange) end() {
	if x.r.Context().Err() != nil {
		x.left()
	}
	x.server.record.end(x.req)
}

// left records that the client went away, unless the server is closing.
func (x *exchange) left() {
	if x.server.running.Err() == nil {
		x.server.record.cancel(x.req)
	}
}

// endpoint handles the requests for a path.
type endpoint struct {
	method string
	answer func(x *exchange)
	checks checks
}

// checks are run one after another until one reports to the verdict what is wrong with a request.
type checks []func(x *exchange, v *verdict)

var endpoints = map[string]endpoint{
	"/chat/completions": {http.MethodPost, (*exchange).chat, checks{(*exchange).judgeChat, admit(chatLimits), (*exchange).checkSeals}},
	"/messages": {http.MethodPost, (*exchange).messages,
		checks{(*exchange).judgeMessages, admit(messagesLimits), (*exchange).checkBlocks}},
	"/messages/count_tokens":  {http.MethodPost, (*exchange).countTokens, checks{(*exchange).judgeMessages}},
	"/responses":              {http.MethodPost, (*exchange).responses, checks{(*exchange).judgeResponses, admit(responsesLimits)}},
	"/responses/input_tokens": {http.MethodPost, (*exchange).inputTokens, checks{(*exchange).judgeResponses}},
	"/responses/compact":      {http.MethodPost, (*exchange).compact, checks{(*exchange).judgeResponses}},
	"/embeddings":             {http.MethodPost, (*exchange).embeddings, nil},
	"/models":                 {http.MethodGet, (*exchange).models, nil},
}

// route calls the endpoint of the request, or refuses the request.
func (x *exchange) route() {
	path := strings.TrimPrefix(x.r.URL.Path, "/v1")
	e, known := endpoints[path]
	if model, single := strings.CutPrefix(path, "/models/"); single {
		e, known = x.server.options.model(model), true
	}
	if call, is := x.speaksGemini(); is {
		e, known = geminiEndpoints[call.method]
	}
	checkKey, wrongMethod := checkKey, fmt.Sprintf("Not allowed to %s on %s. (HINT: Perhaps you meant to use a different HTTP method?)",
		x.r.Method, x.r.URL.Path)
	if x.speaksAnthropic() {
		checkKey, wrongMethod = checkAnthropicKey, "Method Not Allowed"
	}
	if _, is := x.speaksGemini(); is {
		checkKey = x.checkGoogleKey
	}
	var v verdict
	switch {
	case !known, x.server.unable && path == "/responses/compact":
		v.fail(&APIError{http.StatusNotFound, fmt.Sprintf("Invalid URL (%s %s)", x.r.Method, x.r.URL.Path), invalidRequest, "", ""})
	case x.r.Method != e.method:
		v.fail(&APIError{http.StatusMethodNotAllowed, wrongMethod, invalidRequest, "", "method_not_supported"})
	default:
		v.fail(checkKey(x.r.Header, x.server.options.APIKeys))
	}
	for _, check := range e.checks {
		if v.err == nil {
			check(x, &v)
		}
	}
	if v.err != nil {
		x.refuse(v.err)
		return
	}
	e.answer(x)
}

func (x *exchange) speaksAnthropic() bool {
	return strings.HasPrefix(strings.TrimPrefix(x.r.URL.Path, "/v1"), "/messages")
}

// refuse answers with an error in the format of the protocol.
// https://docs.claude.com/en/api/errors
func (x *exchange) refuse(e *APIError) {
	x.server.record.change(func() { x.req.Refused, x.req.Summary = e, false })
	a := Answer{Error: e}
	if x.speaksAnthropic() {
		body := build("error", build("message", e.Message, "type", e.Type), "type", "error")
		a = Answer{Raw: &Raw{e.Status, "application/json", body}}
	}
	if _, is := x.speaksGemini(); is {
		status := map[int]string{http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusNotFound: "NOT_FOUND"}[e.Status]
		a = Answer{Raw: &Raw{e.Status, "application/json", build("error", build("code", e.Status, "message", e.Message, "status", status))}}
	}
	x.play(a, nil)
}

// summarises reports whether the request goes to the summariser.
func (x *exchange) summarises() bool {
	o, n := &x.server.options, len(x.history)
	asked := n > 0 && strings.Contains(contentText(x.history[n-1]), RecordQuestion)
	return asked || slices.Contains(o.SummariserModels, x.req.Model) || o.IsSummary != nil && o.IsSummary(x.req)
}

// RecordQuestion begins the question that the proxy appends to an agent's request to get a record of the conversation. A request
// whose last message contains it goes to the summariser.
const RecordQuestion = "Stop here, and write a record of this conversation."

// models lists the known models, or two if the server accepts any.
func (x *exchange) models() {
	var all []json.RawMessage
	for _, name := range x.server.options.known() {
		all = append(all, x.server.options.modelJSON(name))
	}
	x.sendJSON(`{"object":"list","data":%s}`, mustJSON(all))
}

// model returns the endpoint of a single model.
func (o *Options) model(name string) endpoint {
	check := func(_ *exchange, v *verdict) {
		if len(o.Models) > 0 && !slices.Contains(o.known(), name) {
			v.fail(unknownModel(name))
		}
	}
	return endpoint{http.MethodGet, func(x *exchange) { x.sendJSON("%s", o.modelJSON(name)) }, checks{check}}
}

func (o *Options) known() []string {
	names := slices.AppendSeq(slices.Concat(o.Models, o.SummariserModels), maps.Keys(o.Windows))
	if len(names) == 0 {
		names = []string{"gpt-4o", "gpt-4o-mini"}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (o *Options) modelJSON(name string) json.RawMessage {
	pairs := []any{"id", name, "object", "model", "created", created, "owned_by", "fakeupstream"}
	if n, ok := o.Windows[name]; ok {
		pairs = append(pairs, "max_model_len", n)
	}
	return build(pairs...)
}

// embeddings answers with a fixed vector, and echoes the input under "echo".
func (x *exchange) embeddings() {
	x.sendJSON(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}],"echo":%s}`, x.top.at("input").raw)
}
