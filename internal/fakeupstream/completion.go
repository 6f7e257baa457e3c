package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// created is the time of every completion: there is no clock here.
const created = 1735689600

// completion is a message with what OpenAI puts around it.
type completion struct {
	index     int
	model     string
	message   json.RawMessage
	finish    string
	usage     Usage
	omitUsage bool
}

// head opens the JSON object of a completion or of a chunk of one.
func (c completion) head(object string) string {
	return fmt.Sprintf(`{"id":"chatcmpl-%06d","object":"%s","created":%d,"model":%s,"service_tier":"default",`+
		`"system_fingerprint":"fp_fakeupstream"`, c.index, object, created, mustJSON(c.model))
}

// whole returns the body of an answer that is not streamed.
func (c completion) whole() []byte {
	body := fmt.Sprintf(`%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}]`,
		c.head("chat.completion"), c.message, mustJSON(c.finish))
	if !c.omitUsage {
		body += `,"usage":` + string(c.usage.json())
	}
	return []byte(body + "}\n")
}

// chunks returns the data of the events of a stream, the last one with the usage if the client asked for it.
func (c completion) chunks(runes int, withUsage bool) []string {
	withUsage = withUsage && !c.omitUsage
	head, tail := c.head("chat.completion.chunk"), "}"
	if withUsage {
		tail = `,"usage":null}`
	}
	var all []string
	add := func(delta json.RawMessage, finish string) {
		all = append(all, fmt.Sprintf(`%s,"choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]%s`,
			head, delta, finish, tail))
	}
	for _, delta := range deltas(c.message, runes) {
		add(delta, "null")
	}
	add(json.RawMessage("{}"), string(mustJSON(c.finish)))
	if withUsage {
		all = append(all, fmt.Sprintf(`%s,"choices":[],"usage":%s}`, head, c.usage.json()))
	}
	return all
}

func (u Usage) json() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,`+
		`"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached))
}

// sendStream answers with server-sent events.
func (x *exchange) sendStream(a Answer, c completion) error {
	runes := a.ChunkRunes
	if runes <= 0 {
		runes = x.server.options.ChunkRunes
	}
	options := asObject(x.top["stream_options"])
	pieces := a.Style.events(c.chunks(runes, isTrue(options["include_usage"])))
	x.header(a, "text/event-stream; charset=utf-8").Set("Cache-Control", "no-cache")
	if err := x.open(http.StatusOK); err != nil {
		return err
	}
	return x.send(pieces, a.Fault)
}

// events writes each chunk as one event, in the style of the answer.
func (s Style) events(chunks []string) [][]byte {
	if !s.NoDone {
		chunks = append(chunks, "[DONE]")
	}
	all := make([][]byte, len(chunks))
	for i, data := range chunks {
		event := s.Inject[i]
		if s.Comments {
			event += ": keep-alive\n\n"
		}
		event += "data: " + data + "\n\n"
		if s.CRLF {
			event = strings.ReplaceAll(event, "\n", "\r\n")
		}
		all[i] = []byte(event)
	}
	return all
}

// sendWhole answers with a body of known length, in one piece unless a fault cuts it.
func (x *exchange) sendWhole(a Answer, status int, contentType string, body []byte) error {
	x.header(a, contentType).Set("Content-Length", strconv.Itoa(len(body)))
	if !a.Fault.slow() {
		x.status(status)
		x.enter(PhaseDone) // before the client can have it all
		_, err := x.w.Write(body)
		return err
	}
	if err := x.open(status); err != nil {
		return err
	}
	return x.send(blocks(body), a.Fault)
}

func blocks(body []byte) [][]byte {
	var all [][]byte
	for len(body) > blockSize {
		all, body = append(all, body[:blockSize]), body[blockSize:]
	}
	return append(all, body)
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
