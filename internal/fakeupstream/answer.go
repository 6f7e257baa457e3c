package fakeupstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
)

// reply is an answer with what its protocol puts around it.
type reply interface {
	// whole is the body of an answer that is not streamed.
	whole() []byte
	// events are those of a stream, in which texts come in pieces of so many characters.
	events(runes int) [][]byte
}

// respond picks the answer and plays it; form makes the reply of one that is no error.
func (x *exchange) respond(form func(a Answer) reply) {
	a := x.server.answer(x)
	if message := a.message(); !json.Valid(message) || kindOf(message) != kindObject {
		a.Raw = &Raw{http.StatusInternalServerError, "text/plain", []byte("fakeupstream: the scripted message is not a JSON object")}
	}
	x.play(a, form)
}

// answer picks the answer: the summariser's, the next of the script, or the reply.
func (s *Server) answer(x *exchange) Answer {
	req := s.record.copy(x.req)
	if req.Summary {
		return s.options.Summarise(&req)
	}
	if a, ok := s.next(); ok {
		return a
	}
	return s.options.Reply(&req)
}

// bill has the cache see the prompt, and gives what the answer costs. What is billed counts as cached from then on.
func (x *exchange) bill(a Answer, form json.RawMessage, messages []json.RawMessage, output ...json.RawMessage) Usage {
	s := x.server
	usage := Usage{Prompt: x.req.PromptTokens, Cached: s.cache.use(prompt{
		owner: x.r.Header.Get("X-Api-Key") + x.r.Header.Get("Authorization"), model: x.req.Model, tools: x.req.Tools, form: form, messages: messages,
	}, s.options.CountTokens)}
	for _, o := range output {
		usage.Completion += s.options.CountTokens(o)
	}
	if a.Usage != nil {
		usage = *a.Usage
	}
	s.record.change(func() { x.req.CachedTokens = usage.Cached })
	return usage
}

// play sends the answer with its faults. When it cannot be sent to its end the connection is closed: a mere return would
// look to the client like a clean end.
func (x *exchange) play(a Answer, form func(a Answer) reply) {
	if err := x.perform(a, form); err != nil && !errors.Is(err, errHalf) {
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) perform(a Answer, form func(a Answer) reply) error {
	if err := x.hold(a.Fault.HoldHeaders); err != nil {
		return err
	}
	if a.Fault.Break != BreakNone && a.Fault.BreakAfter < 0 {
		return x.breakOff(a.Fault.Break)
	}
	switch {
	case a.Raw != nil:
		return x.sendWhole(a, *a.Raw)
	case a.Error != nil:
		return x.sendWhole(a, Raw{a.Error.Status, "application/json; charset=utf-8", a.Error.Body()})
	}
	r := form(a)
	if !x.req.Stream {
		return x.sendWhole(a, Raw{http.StatusOK, "application/json", r.whole()})
	}
	runes := a.ChunkRunes
	if runes <= 0 {
		runes = x.server.options.ChunkRunes
	}
	x.header(a, "text/event-stream; charset=utf-8").Set("Cache-Control", "no-cache")
	if err := x.open(http.StatusOK); err != nil {
		return err
	}
	events := r.events(runes)
	for i := range events {
		events[i] = slices.Concat([]byte(a.Inject[i]), events[i])
	}
	return x.send(events, a.Fault)
}

// sendWhole answers with a body of known length, in one piece unless a fault cuts it.
func (x *exchange) sendWhole(a Answer, whole Raw) error {
	x.header(a, whole.ContentType).Set("Content-Length", strconv.Itoa(len(whole.Body)))
	if !a.Fault.slow() {
		x.status(whole.Status)
		x.enter(PhaseDone) // before the client can have it all
		_, err := x.w.Write(whole.Body)
		return err
	}
	if err := x.open(whole.Status); err != nil {
		return err
	}
	var blocks [][]byte
	for rest := whole.Body; ; rest = rest[blockSize:] {
		if len(rest) <= blockSize {
			return x.send(append(blocks, rest), a.Fault)
		}
		blocks = append(blocks, rest[:blockSize])
	}
}

func (x *exchange) sendJSON(format string, args ...any) {
	x.play(Answer{Raw: &Raw{http.StatusOK, "application/json", fmt.Appendf(nil, format+"\n", args...)}}, nil)
}

// header sets the headers that every answer has, and then the answer's own.
func (x *exchange) header(a Answer, contentType string) http.Header {
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Request-Id", fmt.Sprintf("req_%06d", x.req.Index))
	h.Set("Openai-Version", "2020-10-01")
	for key, values := range a.Header {
		h[http.CanonicalHeaderKey(key)] = values
	}
	return h
}

// open sends the header at once, before any of the body.
func (x *exchange) open(status int) error {
	x.status(status)
	return http.NewResponseController(x.w).Flush()
}

func (x *exchange) status(status int) {
	x.w.WriteHeader(status)
	x.server.record.change(func() { x.req.Status, x.req.Phase = status, PhaseBody })
}

// character is one of the inside of a JSON string: a pair of surrogates, an escape, or what stands for itself.
var character = regexp.MustCompile(`(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.`)

// splitString splits a JSON string literal into literals of so many characters each. It never decodes, so that every
// escape stays as it was written, and never splits a character, an escape or a pair of surrogates.
func splitString(literal json.RawMessage, runes int) []json.RawMessage {
	text := literal[1 : len(literal)-1]
	all := character.FindAllIndex(text, -1)
	var pieces []json.RawMessage
	for i := 0; i < len(all); i += runes {
		last := all[min(i+runes, len(all))-1]
		pieces = append(pieces, json.RawMessage(`"`+string(text[all[i][0]:last[1]])+`"`))
	}
	return pieces
}
