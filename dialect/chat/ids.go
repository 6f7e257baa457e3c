package chat

import (
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// ids collects the call ids of a whole body in one text, so that they cost two allocations and not one each.
type ids struct {
	text  []byte
	spans []dialect.Span // of the calls
}

// ref is a message's part in ids.
type ref struct {
	from, to int          // its calls in ids.spans
	result   dialect.Span // the id it answers
}

// add keeps an id. What is not a string counts as empty.
func (s *ids) add(id rawjson.Value) dialect.Span {
	from := len(s.text)
	if id.Escapes == rawjson.Plain {
		s.text = append(s.text, id.Inner()...)
	} else {
		s.text, _ = rawjson.AppendUnquote(s.text, id.Inner())
	}
	return dialect.Span{From: from, To: len(s.text)}
}

func (s *ids) reset() {
	s.text, s.spans = recycle(s.text, maxBytes), recycle(s.spans, maxItems)
}

// addCalls keeps the ids of the calls that the message makes. The older function call has no id: its name stands for
// it, as in the result that answers it.
func (w *splitter) addCalls() {
	for i := range w.msg.calls {
		w.ids.spans = append(w.ids.spans, w.ids.add(w.msg.calls[i].id))
	}
	if w.msg.functionCall.Kind == rawjson.Object {
		w.ids.spans = append(w.ids.spans, w.ids.add(w.msg.function.name))
	}
}

// link gives the messages their ids.
func (w *splitter) link(messages []session.Message) {
	text := string(w.ids.text)
	calls := make([]string, len(w.ids.spans))
	for i, s := range w.ids.spans {
		calls[i] = text[s.From:s.To]
	}
	for i, r := range w.refs {
		if r.to > r.from {
			messages[i].Calls = calls[r.from:r.to:r.to]
		}
		messages[i].Result = text[r.result.From:r.result.To]
	}
}
