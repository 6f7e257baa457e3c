package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
)

// reply is an answer in the format of its protocol.
type reply struct {
	whole  []byte                                  // the body if it is not streamed
	events func(runes int, add func(event []byte)) // adds those of a stream, with texts in pieces of that many characters
}

// respond picks the answer and sends it with its faults. form converts it to a reply unless it is an error.
func (x *exchange) respond(form func(a Answer) reply) {
	a := x.server.answer(x)
	if a.message().kind != kindObject {
		a.Raw = &Raw{http.StatusInternalServerError, "text/plain", []byte("fakeupstream: the scripted message is not a JSON object")}
	}
	x.play(a, form)
}

// answer returns the summariser's answer, the next one of the script, or that of Options.Reply.
func (s *Server) answer(x *exchange) Answer {
	var req Request
	s.record.change(func() { req = *x.req })
	if req.Summary {
		return s.options.Summarise(&req)
	}
	s.mu.Lock()
	if len(s.queue) > 0 {
		defer s.mu.Unlock()
		first := s.queue[0]
		s.queue = s.queue[1:]
		return first
	}
	s.mu.Unlock()
	return s.options.Reply(&req)
}

// bill returns the usage of an answer, and adds its prompt to the simulated cache.
func (x *exchange) bill(a Answer, form value, messages []json.RawMessage, output ...value) Usage {
	s := x.server
	p := prompt{model: x.req.Model, tools: x.top.at("tools"), form: form, messages: messages}
	p.owner = x.r.Header.Get("X-Api-Key") + x.r.Header.Get("X-Goog-Api-Key") + x.r.Header.Get("Authorization")
	usage := Usage{Prompt: x.req.PromptTokens, Cached: s.cache.use(p, s.options.CountTokens)}
	for _, o := range output {
		usage.Completion += s.options.CountTokens(o.raw)
	}
	if a.Usage != nil {
		usage = *a.Usage
	}
	s.record.change(func() { x.req.CachedTokens, x.req.CompletionTokens = usage.Cached, usage.Completion })
	return usage
}

// play sends the answer with its faults. If it fails the connection is closed: returning would look like a clean end to the client.
func (x *exchange) play(a Answer, form func(a Answer) reply) {
	if err := x.perform(a, form); err != nil {
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
		return x.sendWhole(a, Raw{http.StatusOK, "application/json", r.whole})
	}
	x.header(a, "text/event-stream; charset=utf-8").Set("Cache-Control", "no-cache")
	if err := x.open(http.StatusOK); err != nil {
		return err
	}
	var events [][]byte
	r.events(cmp.Or(a.ChunkRunes, x.server.options.ChunkRunes), func(event []byte) {
		events = append(events, slices.Concat([]byte(a.Inject[len(events)]), event))
	})
	return x.send(events, a.Fault)
}

// sendWhole sends a body of known length, in one piece unless a fault splits it.
func (x *exchange) sendWhole(a Answer, whole Raw) error {
	x.header(a, whole.ContentType).Set("Content-Length", strconv.Itoa(len(whole.Body)))
	if !a.Fault.slow() {
		x.status(whole.Status)
		x.enter(PhaseDone) // before the client can have received all of it
		_, err := x.w.Write(whole.Body)
		return err
	}
	if err := x.open(whole.Status); err != nil {
		return err
	}
	return x.send(slices.Collect(slices.Chunk(whole.Body, blockSize)), a.Fault)
}

func (x *exchange) sendJSON(format string, args ...any) {
	x.play(Answer{Raw: &Raw{http.StatusOK, "application/json", fmt.Appendf(nil, format+"\n", args...)}}, nil)
}

// header sets the headers of every answer, and then the answer's own.
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

// open sends the header before any of the body.
func (x *exchange) open(status int) error {
	x.status(status)
	return http.NewResponseController(x.w).Flush()
}

func (x *exchange) status(status int) {
	x.w.WriteHeader(status)
	x.server.record.change(func() { x.req.Status, x.req.Phase = status, PhaseBody })
}

// hold waits for the channel. A nil channel does not hold. The error means that the client or the server went away.
func (x *exchange) hold(until <-chan struct{}) error {
	if until == nil {
		return nil
	}
	select {
	case <-until:
		return nil
	case <-x.r.Context().Done():
	case <-x.server.running.Done():
	}
	return http.ErrAbortHandler
}

// send writes and flushes the pieces, with the faults between them. The headers have been sent. A client may leave as soon as it
// has the last piece, which does not count as cancelling, so the exchange is marked as done just before.
func (x *exchange) send(pieces [][]byte, f Fault) error {
	for i := 0; ; i++ {
		if f.holdsAt(i) {
			if err := x.hold(f.Hold); err != nil {
				return err
			}
		}
		if f.Break != BreakNone && i == f.BreakAfter {
			return x.breakOff(f.Break)
		}
		if i == len(pieces) {
			return nil
		}
		if err := x.hold(f.Drip); err != nil {
			return err
		}
		if i == len(pieces)-1 && !f.holdsAt(len(pieces)) {
			x.enter(PhaseDone)
		}
		_, err := x.w.Write(pieces[i])
		if err = cmp.Or(err, http.NewResponseController(x.w).Flush()); err != nil {
			x.left()
			return err
		}
	}
}

// breakOff ends the answer early. The error makes net/http close the connection without ending the body.
func (x *exchange) breakOff(how Break) error {
	switch {
	case how == BreakReset:
		x.reset()
	case how == BreakEnd && x.req.Stream:
		return nil
	}
	return http.ErrAbortHandler
}

// reset hijacks the connection and makes the kernel send RST instead of FIN. HTTP/2 connections cannot be hijacked.
func (x *exchange) reset() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// character matches one character inside a JSON string: a surrogate pair, an escape, or a plain character.
var character = regexp.MustCompile(`(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.`)

// splitString splits a JSON string literal into literals of that many characters. It does not decode: every escape stays as it is
// written, and no character, escape or surrogate pair is split.
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
