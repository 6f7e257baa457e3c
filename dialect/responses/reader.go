package responses

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// reader reads the items of one body.
type reader struct {
	w    *split.Walker
	item item
	turn []item // what a model said, and was not filed yet
	from int    // where that begins in the body,
	to   int    // and ends
	ids  []rawjson.Value
}

// What is understood of one turn at most, and what scratch may hold.
const (
	maxItems = 16 << 10
	maxKept  = 1 << 10
)

func newReader(w *split.Walker) split.Reader { return &reader{w: w} }

// Reset forgets the body, and scratch that grew too large to keep.
func (r *reader) Reset() {
	r.item = item{}
	clear(r.turn[:cap(r.turn)])
	clear(r.ids[:cap(r.ids)])
	r.turn, r.ids = split.Recycle(r.turn, maxKept), split.Recycle(r.ids, maxKept)
}

// Take looks into nothing: contents and outputs are read where they are asked for.
func (r *reader) Take(*rawjson.Value) (bool, error) { return false, nil }

// Text files a history that is a text: a message of a user.
func (r *reader) Text(text rawjson.Value) bool {
	r.item = item{role: rawjson.ValueOf([]byte(`"user"`)), content: text}
	m := session.Message{Raw: lone(text.Raw), Kind: session.User, Digest: messageDigest(r.w.Digest(), &r.item)}
	r.w.File(m, r.w.Offset(), nil, rawjson.Value{})
	return true
}

// Element reads one item.
func (r *reader) Element() error {
	from := r.w.Offset()
	if !r.w.Enter() {
		r.w.Odd("an item is not an object")
		return nil
	}
	r.item = item{}
	if err := r.w.Object(&r.item, ""); err != nil || r.w.Failed() {
		return err
	}
	r.item.raw = r.w.Text(from)
	if r.item.class() == said {
		r.hold(from)
		return nil
	}
	r.Close()
	r.file(r.item.raw)
	return nil
}

// hold keeps what a model said until its turn ends.
func (r *reader) hold(from int) {
	if len(r.turn) == maxItems {
		r.w.Odd("a turn has too many items")
		return
	}
	if r.ends() {
		r.Close()
	}
	if len(r.turn) == 0 {
		r.from = from
	}
	r.turn, r.to = append(r.turn, r.item), r.w.Offset()
}

// ends reports whether the turn is over, as it does not go on with the item that was read: it ends with a message, calls nothing, and
// the item begins another one.
func (r *reader) ends() bool {
	if len(r.turn) == 0 || !r.turn[len(r.turn)-1].isMessage() || !r.item.isMessage() && !r.item.isReasoning() {
		return false
	}
	return !slices.ContainsFunc(r.turn, func(it item) bool { return it.calls().Kind == rawjson.String })
}

// Close files what a model said.
func (r *reader) Close() {
	if len(r.turn) == 0 {
		return
	}
	m := session.Message{Raw: r.w.Between(r.from, r.to), Kind: session.Agent, Sealed: sealed(r.turn, r.before())}
	r.ids = r.ids[:0]
	for i := range r.turn {
		if id := r.turn[i].calls(); id.Kind != 0 && id.Kind != rawjson.Null {
			r.ids, m.Kind = append(r.ids, id), session.Action
		}
		m.Attached = m.Attached || !r.turn[i].plain()
	}
	m.Digest = turnDigest(r.w.Digest(), r.turn)
	r.w.File(m, r.to, r.ids, rawjson.Value{})
	clear(r.turn)
	r.turn = r.turn[:0]
}

// before is what the model said before, with nothing between but the results of it; nil where there is no such message.
func (r *reader) before() *session.Message {
	for n := 0; ; n++ {
		switch m := r.w.Before(n); {
		case m == nil || m.Kind == session.User:
			return nil
		case m.Kind == session.Agent || m.Kind == session.Action:
			return m
		}
	}
}

// file files an item that is a message of its own.
func (r *reader) file(raw []byte) {
	m := session.Message{Raw: raw}
	switch it := &r.item; it.class() {
	case typed:
		m.Kind, m.Digest, m.Attached = session.User, messageDigest(r.w.Digest(), it), attached(it.content)
	case system, wish: // upstream's own compactions, and what asks for one, stay where they are
		m.Kind, m.Attached = session.System, !it.isMessage()
		if m.Digest = messageDigest(r.w.Digest(), it); !it.isMessage() {
			m.Digest = turnDigest(r.w.Digest(), []item{*it})
		}
	case result:
		m.Kind, m.Digest, m.Attached = session.Observation, resultDigest(r.w.Digest(), it), attached(it.output)
		r.w.File(m, r.w.Offset(), nil, it.answers())
		return
	default:
		r.w.Odd("an item is of no type that is known")
		return
	}
	r.w.File(m, r.w.Offset(), nil, rawjson.Value{})
}
