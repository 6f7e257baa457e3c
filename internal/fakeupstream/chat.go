package fakeupstream

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// chat judges a chat completion and answers it.
func (x *exchange) chat() {
	if err := x.judge(); err != nil {
		x.refuse(err)
		return
	}
	takes := measure(x.top, x.req.Messages, x.server.options.CountTokens)
	if err := checkLimits(takes, x.server.options.window(x.req.Model), x.server.options.MaxOutput); err != nil {
		x.refuse(err)
		return
	}
	x.account(takes)
	if x.server.options.Seals != "" && !x.req.Summary {
		if err := x.server.checkSeals(x); err != nil {
			x.refuse(err)
			return
		}
	}
	x.play(x.server.answer(x))
}

// judge returns why the request is refused, whatever its size.
func (x *exchange) judge() *APIError {
	o := x.server.options
	if err := checkContentType(x.r.Header); err != nil {
		return err
	}
	validate := Validate
	if o.Strict {
		validate = ValidateStrict
	}
	if err := validate(x.req.Body); err != nil {
		return err
	}
	if err := checkTurns(x.req.Messages); o.Alternates && err != nil {
		return err
	}
	if len(o.Models) > 0 && !slices.Contains(o.Models, x.req.Model) && !slices.Contains(o.SummariserModels, x.req.Model) {
		return unknownModel(x.req.Model)
	}
	return nil
}

func (o Options) window(model string) int {
	if own, ok := o.Windows[model]; ok {
		return own
	}
	return o.ContextWindow
}

// summarises reports whether a request is a summariser's.
func (o *Options) summarises(r *Request) bool {
	return slices.Contains(o.SummariserModels, r.Model) || asksForRecord(r) || o.IsSummary != nil && o.IsSummary(r)
}

// RecordQuestion begins what is asked at the end of an agent's own request, for a record of it.
const RecordQuestion = "Stop here, and write a record of this conversation."

// asksForRecord reports whether the last message of a request does.
func asksForRecord(r *Request) bool {
	n := len(r.Messages)
	return n > 0 && strings.Contains(contentText(asObject(r.Messages[n-1])["content"]), RecordQuestion)
}

// account puts into the record what the request costs.
func (x *exchange) account(takes size) {
	s := x.server
	s.record.change(func() {
		x.req.PromptTokens = takes.prompt()
		if x.req.Summary {
			s.record.summaries++
		}
	})
}

// answer picks the answer: the summariser's, the next of the script, or the reply. What will be billed counts as cached
// from then on.
func (s *Server) answer(x *exchange) Answer {
	req := s.record.copy(x.req)
	if req.Summary {
		return s.options.Summarise(&req)
	}
	a, ok := s.next()
	if !ok {
		a = s.options.Reply(&req)
	}
	if s.options.Seals != "" && a.Error == nil && a.Raw == nil && !x.speaksAnthropic() && !x.speaksResponses() {
		a.Message = s.seal(x, a.message())
		if a.Sealed != nil {
			a.Sealed(a.Message)
		}
	}
	return a
}

// play sends the answer with its faults. When it cannot be sent to its end the connection is closed: a mere return would
// look to the client like a clean end.
func (x *exchange) play(a Answer) {
	if err := x.perform(a); err != nil && !errors.Is(err, errHalf) {
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) perform(a Answer) error {
	if err := x.hold(a.Fault.HoldHeaders); err != nil {
		return err
	}
	if a.Fault.Break != BreakNone && a.Fault.BreakAfter < 0 {
		return x.breakOff(a.Fault.Break)
	}
	switch {
	case a.Raw != nil:
		return x.sendWhole(a, a.Raw.Status, a.Raw.ContentType, a.Raw.Body)
	case a.Error != nil:
		return x.sendWhole(a, a.Error.Status, "application/json; charset=utf-8", a.Error.Body())
	default:
		return x.sendMessage(a)
	}
}

// sendMessage answers with a completion, whole or streamed.
func (x *exchange) sendMessage(a Answer) error {
	message := a.message()
	if !json.Valid(message) || kindOf(message) != kindObject {
		complaint := []byte("fakeupstream: the scripted message is not a JSON object")
		return x.sendWhole(a, http.StatusInternalServerError, "text/plain", complaint)
	}
	c := x.completion(a, message)
	if x.req.Stream {
		return x.sendStream(a, c)
	}
	return x.sendWhole(a, http.StatusOK, "application/json", c.whole())
}

// completion makes the completion and has the cache see the prompt.
func (x *exchange) completion(a Answer, message json.RawMessage) completion {
	s := x.server
	cached := s.cache.use(prompt{
		owner: x.req.Header.Get("Authorization"), model: x.req.Model, tools: x.req.Tools, form: x.top["response_format"], messages: x.req.Messages,
	}, s.options.CountTokens)
	usage := Usage{Prompt: x.req.PromptTokens, Completion: s.options.CountTokens(message), Cached: cached}
	if a.Usage != nil {
		usage = *a.Usage
	}
	s.record.change(func() { x.req.CachedTokens = usage.Cached })
	return completion{
		index: x.req.Index, model: x.req.Model, message: message,
		finish: a.finishReason(asObject(message)), usage: usage, omitUsage: a.OmitUsage,
	}
}
