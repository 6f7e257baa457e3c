package responses

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// reader reads the items of one body.
type reader struct {
	w     *split.Walker
	turn  []*item      // the model's output in the current turn, not added yet
	calls bool         // the turn contains a call
	span  dialect.Span // of the turn in the body
}

// maxItems limits the items of one turn.
const maxItems = 16 << 10

func newReader(w *split.Walker) split.Reader {
	r := &reader{w: w}
	return split.Reader{Keys: itemKeys, Element: r.element, Text: r.text, Close: func() { r.close(nil) }}
}

// text adds a history that is a string: a user message.
func (r *reader) text(text rawjson.Value) {
	m := session.Message{Raw: userText(text.Raw), Kind: session.User, Digest: r.w.Digest.Message("user", text)}
	r.w.Add(m, r.w.ElementSpan().To)
}

// element reads one item. It collects the model's output until the turn ends, and adds it as one message.
func (r *reader) element(o *split.Object) error {
	it := &item{o}
	if it.class() == modelOutput {
		r.extendTurn(it)
		return nil
	}
	r.close(it)
	r.add(it)
	return nil
}

// extendTurn adds output of the model to the current turn.
func (r *reader) extendTurn(it *item) {
	if len(r.turn) == maxItems {
		r.w.Unsupported("a turn has too many items")
		return
	}
	if r.endsBefore(it) {
		r.close(it)
	}
	span := r.w.ElementSpan()
	if len(r.turn) == 0 {
		r.span.From = span.From
	}
	r.span.To = span.To
	object := *it.Object // the Walker reuses it
	r.turn = append(r.turn, &item{&object})
	r.calls = r.calls || it.callID().Kind == rawjson.String
}

// endsBefore reports whether the current turn is over when next follows: it contains no call and ends with a message, and
// next is a message or reasoning.
func (r *reader) endsBefore(next *item) bool {
	if len(r.turn) == 0 || r.calls || !r.turn[len(r.turn)-1].isMessage() {
		return false
	}
	return next.isMessage() || next.isReasoning()
}

// close adds the current turn as one message. next is the item that follows it, nil at the end of the list.
func (r *reader) close(next *item) {
	if len(r.turn) == 0 {
		return
	}
	m := session.Message{Raw: r.w.Slice(r.span), Kind: session.Agent, Sealed: sealed(r.turn, r.before())}
	for _, it := range r.turn {
		if id := it.callID(); id.Kind != 0 && id.Kind != rawjson.Null {
			m.Calls = append(m.Calls, id.Text())
			m.Kind = session.Action
		}
		m.Attached = m.Attached || !it.isPlain()
		if id := it.Get("id").Text(); it.isReference() && id != "" {
			m.Refers = append(m.Refers, id)
		}
	}
	if len(m.Refers) > 0 && next != nil && next.class() == toolResult {
		m.Kind = session.Action // the calls are among the items that it refers to
	}
	m.Digest = turnDigest(&r.w.Digest, r.turn)
	r.w.Add(m, r.span.To)
	r.turn, r.calls = nil, false
}

// before returns the model's previous message if no user message follows it, or nil.
func (r *reader) before() *session.Message {
	for i := range slices.Backward(r.w.Messages) {
		switch m := &r.w.Messages[i]; m.Kind {
		case session.User:
			return nil
		case session.Agent, session.Action:
			return m
		}
	}
	return nil
}

// add adds an item that is a message of its own.
func (r *reader) add(it *item) {
	m := session.Message{Raw: it.Raw, Lasts: it.lasts(), Relayed: it.isRelayed()}
	role, content := it.Get("role").Text(), it.Get("content")
	digest := &r.w.Digest
	switch it.class() {
	case userMessage:
		m.Kind = session.User
		m.Digest = digest.Message(role, content)
		m.Attached = hasAttachment(content)
	case systemMessage, compactionTrigger:
		m.Kind = session.System
		if it.isMessage() {
			m.Digest = digest.Message(role, content)
		} else { // a compaction by upstream, or a request for one
			m.Digest = turnDigest(digest, []*item{it})
			m.Attached = true
		}
	case standing:
		m.Kind, m.Lasts = session.System, true
		m.Digest = turnDigest(digest, []*item{it})
	case toolResult:
		m.Kind = session.Observation
		m.Digest = resultDigest(digest, it)
		m.Attached = hasAttachment(it.Get("output"))
		m.Result = it.resultID().Text()
	default:
		r.w.Unsupported("an item has an unknown type or role")
		return
	}
	r.w.Add(m, r.w.ElementSpan().To)
}
