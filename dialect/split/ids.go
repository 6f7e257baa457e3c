package split

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
	s.text, s.spans = Recycle(s.text, maxBytes), Recycle(s.spans, maxItems)
}

// link gives the messages their ids.
func (w *Walker) link(messages []session.Message) {
	text := string(w.fresh.ids.text)
	calls := make([]string, len(w.fresh.ids.spans))
	for i, s := range w.fresh.ids.spans {
		calls[i] = text[s.From:s.To]
	}
	for i, r := range w.fresh.refs {
		if r.to > r.from {
			messages[i].Calls = calls[r.from:r.to:r.to]
		}
		messages[i].Result = text[r.result.From:r.result.To]
	}
}
