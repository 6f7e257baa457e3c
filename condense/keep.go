package condense

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Keep names messages that stay as they are, because the operator says so. It is safe for concurrent use.
type Keep struct {
	tools    []string
	patterns []*regexp.Regexp
	known    lru.Cache[session.Hash, named] // by digest: a history comes again with each request
}

// named says what of a message a Keep names.
type named struct {
	whole bool     // the message, with the calls and results that belong to it
	calls []string // ids of those of its calls that have one of the tools
}

// rememberedMessages is how many messages a Keep remembers: those of some long histories.
const rememberedMessages = 1 << 14

// NewKeep returns what keeps the calls of tools, with their results, and the messages in whose text or arguments a pattern occurs. A tool may
// be the beginning of a name and a "*".
func NewKeep(tools []string, patterns []*regexp.Regexp) *Keep {
	return &Keep{tools: tools, patterns: patterns, known: lru.New[session.Hash, named](rememberedMessages)}
}

// Keeping is a condenser under which what Keep names stays, in all of its stages.
type Keeping struct {
	Condenser
	Keep *Keep
}

func (k Keeping) Condense(in Input) Decision {
	in.keeps = append(slices.Clip(in.keeps), k.Keep)
	return k.Condenser.Condense(in)
}

// of returns what it names of a message.
func (k *Keep) of(codec Codec, m *session.Message) named {
	if known, ok := k.known.Get(m.Digest); ok {
		return known
	}
	found := k.read(read(codec, m.Raw))
	k.known.Add(m.Digest, found)
	return found
}

func (k *Keep) read(c session.Content) (found named) {
	found.whole = k.matches(c.Text)
	for _, call := range c.Calls {
		if k.isTool(call.Name) || k.matches(call.Arguments) {
			found.calls = append(found.calls, call.ID)
		}
	}
	found.whole = found.whole || len(found.calls) > 0
	return found
}

func (k *Keep) matches(text string) bool {
	return slices.ContainsFunc(k.patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}

func (k *Keep) isTool(name string) bool {
	return slices.ContainsFunc(k.tools, func(tool string) bool {
		prefix, open := strings.CutSuffix(tool, "*")
		return tool == name || open && strings.HasPrefix(name, prefix)
	})
}

// kept reports by index which messages of the history stay whole: those that last, those that Keep names, with the results of its calls, and
// those in which a person wrote a mark.
func (in *Input) kept() []bool {
	messages := in.View.History.Messages
	stay := make([]bool, len(messages))
	open := map[string]bool{} // calls that stay, and have no result yet
	for i := range messages {
		m := &messages[i]
		stay[i] = m.Lasts || in.View.History.IsNotice(i) || in.isMarked(i) || m.Result != "" && open[m.Result]
		for _, id := range m.Calls { // an id may be used again
			delete(open, id)
		}
		if m.Kind == session.System {
			continue
		}
		for _, keep := range in.keeps {
			found := keep.of(in.Codec, m)
			stay[i] = stay[i] || found.whole
			for _, id := range found.calls {
				open[id] = true
			}
		}
	}
	return stay
}

// stays returns whether an item stays as it is by in.kept.
func (in *Input) stays() func(item *session.Item) bool {
	kept := sync.OnceValue(in.kept)
	return func(item *session.Item) bool {
		return lasts(in.View, item) || len(in.keeps) > 0 && item.Index >= 0 && kept()[item.Index]
	}
}

// The mark with which a person keeps a message. Its tags stand around what matters in it.
const (
	markOpen  = "<keep>"
	markClose = "</keep>"
)

// isMarked reports whether a person wrote the mark in message i. What an agent or a tool puts into a message does not count: it must not be able
// to stay for good.
func (in *Input) isMarked(i int) bool {
	m := &in.View.History.Messages[i]
	if !in.View.History.ByUser(i) || !bytes.Contains(m.Raw, []byte("keep")) { // < and > may be escaped
		return false
	}
	return len(Marked(read(in.Codec, m.Raw).Text)) > 0
}

// Marked returns what a person marked in the text of a message.
func Marked(text string) (marked []string) {
	if !strings.Contains(text, markClose) {
		return nil
	}
	for _, part := range strings.Split(record.TypedText(text), markOpen)[1:] {
		if inside, _, closed := strings.Cut(part, markClose); closed && strings.TrimSpace(inside) != "" {
			marked = append(marked, strings.TrimSpace(inside))
		}
	}
	return marked
}
