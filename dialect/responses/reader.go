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
	turn  []*item      // what a model said, and was not filed yet
	calls bool         // it calls something
	at    dialect.Span // where it stands in the body
}

// maxItems is how many items are understood of one turn at most.
const maxItems = 16 << 10

func newReader(w *split.Walker) split.Reader {
	r := &reader{w: w}
	return split.Reader{Keys: itemKeys, Element: r.element, Text: r.text, Close: r.close}
}

// text files a history that is a text: a message of a user.
func (r *reader) text(text rawjson.Value) {
	m := session.Message{Raw: lone(text.Raw), Kind: session.User, Digest: messageDigest(r.w.Digest(), "user", text)}
	r.w.File(m, r.w.Element().To)
}

// element reads one item.
func (r *reader) element(o *split.Object) error {
	it := &item{o}
	if it.class() == said {
		r.hold(it)
		return nil
	}
	r.close()
	r.file(it)
	return nil
}

// hold keeps what a model said until its turn ends.
func (r *reader) hold(it *item) {
	if len(r.turn) == maxItems {
		r.w.Odd("a turn has too many items")
		return
	}
	if r.ends(it) {
		r.close()
	}
	at := r.w.Element()
	if len(r.turn) == 0 {
		r.at.From = at.From
	}
	kept := *it.Object
	r.turn, r.at.To = append(r.turn, &item{&kept}), at.To
	r.calls = r.calls || it.calls().Kind == rawjson.String
}

// ends reports whether the turn is over, as it does not go on with the next *item: it ends with a message, calls nothing, and
// the item begins another one.
func (r *reader) ends(next *item) bool {
	if len(r.turn) == 0 || r.calls || !r.turn[len(r.turn)-1].isMessage() {
		return false
	}
	return next.isMessage() || next.isReasoning()
}

// close files what a model said.
func (r *reader) close() {
	if len(r.turn) == 0 {
		return
	}
	m := session.Message{Raw: r.w.Between(r.at), Kind: session.Agent, Sealed: sealed(r.turn, r.before())}
	for i := range r.turn {
		if id := r.turn[i].calls(); id.Kind != 0 && id.Kind != rawjson.Null {
			m.Calls, m.Kind = append(m.Calls, id.Text()), session.Action
		}
		m.Attached = m.Attached || !r.turn[i].plain()
	}
	m.Digest = turnDigest(r.w.Digest(), r.turn)
	r.w.File(m, r.at.To)
	r.turn, r.calls = nil, false
}

// before is what the model said before, with nothing between but the results of it; nil where there is no such message.
func (r *reader) before() *session.Message {
	filed := r.w.Filed()
	for i := range slices.Backward(filed) {
		switch filed[i].Kind {
		case session.User:
			return nil
		case session.Agent, session.Action:
			return &filed[i]
		}
	}
	return nil
}

// file files an item that is a message of its own.
func (r *reader) file(it *item) {
	m := session.Message{Raw: it.Raw}
	role, content := it.Get("role").Text(), it.Get("content")
	switch class := it.class(); {
	case class == typed:
		m.Kind, m.Digest, m.Attached = session.User, messageDigest(r.w.Digest(), role, content), attached(content)
	case class == system && it.isMessage():
		m.Kind, m.Digest = session.System, messageDigest(r.w.Digest(), role, content)
	case class == system, class == wish: // upstream's own compactions, and what asks for one, stay where they are
		m.Kind, m.Digest, m.Attached = session.System, turnDigest(r.w.Digest(), []*item{it}), true
	case class == result:
		m.Kind, m.Digest, m.Attached = session.Observation, resultDigest(r.w.Digest(), it), attached(it.Get("output"))
		m.Result = it.answers().Text()
	default:
		r.w.Odd("an item is of no type that is known")
		return
	}
	r.w.File(m, r.w.Element().To)
}
