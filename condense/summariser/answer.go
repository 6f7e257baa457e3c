package summariser

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var (
	// errNotStreamed means that an answer came whole although a stream was requested. It can be used.
	errNotStreamed = errors.New("the answer was not streamed")
	// errGarbled means that a stream has another form than that of its protocol, at a server that may have no streams.
	errGarbled = errors.New("the stream is not a chat completion")
)

// readStream reads a stream up to its last event.
func (s *sender) readStream(from io.Reader) (dialect.Answer, error) {
	tee := s.protocol.Tee(true)
	var err error
	for buffer := make([]byte, 4<<10); err == nil && !tee.Ended() && !tee.Failed(); {
		var n int
		n, err = from.Read(buffer)
		tee.Write(buffer[:n])
	}
	a := tee.Answer()
	switch {
	case a.Failed:
		return a, &refused{status: a.Status, code: a.Code}
	case a.Lost:
		return a, errResponseSize
	case err != nil && !errors.Is(err, io.EOF):
		return a, err // callError wraps it
	case a.Garbled && s.protocol.Servers().Differ:
		return a, errGarbled
	case a.Garbled:
		return a, errUnreadable
	case a.Finish == "" && !(tee.Ended() && a.Usage != nil):
		return a, errNoEnd // some servers report no reason, but their usage at the end
	}
	return a, nil
}

// readWhole reads an answer that is not streamed.
func (s *sender) readWhole(text []byte) (dialect.Answer, error) {
	if json.Unmarshal(text, &struct{}{}) != nil {
		return dialect.Answer{}, errUnreadable
	}
	tee := s.protocol.Tee(false)
	tee.Write(text)
	a := tee.Answer()
	switch {
	case a.Failed:
		return a, &refused{status: a.Status, code: a.Code}
	case a.Lost || len(text) > split.MaxAnswer:
		return a, errResponseSize
	case s.protocol.Servers().Differ:
		return a, errNotStreamed
	}
	return a, nil
}

// replyTo returns the reply to r that an answer has.
func replyTo(r *condense.Request, a *dialect.Answer) condense.Reply {
	out := condense.Reply{
		Text: a.Text, Finish: condense.FinishReason(a.Finish), Refusal: a.Refusal, Usage: *cmp.Or(a.Usage, &session.Usage{}),
	}
	if a.Refusal != "" {
		out.Text = ""
	}
	for _, call := range a.Calls {
		switch {
		case r.Function != nil && call.Name == r.Function.Name:
			out.Arguments = cmp.Or(out.Arguments, call.Arguments)
		case r.Function == nil && r.Format != nil && call.Name == r.Format.Name: // a format may be asked for as a function
			out.Text = call.Arguments
		}
	}
	if (len(a.Calls) > 0 || a.Ran) && (out.Finish == "stop" || out.Finish == "") {
		out.Finish = "tool_calls" // some servers report another reason
	}
	return out
}
