package bench

import (
	"math/rand/v2"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// History is one agent's conversation, as a request's body holds it, with steps that are still to come. Forks share their
// text and differ in every message but the system prompt.
type History struct {
	joined []byte // the messages, parted by commas
	ends   []int  // of each message in joined
	stamps []stamp
	first  int // messages of the shortest request that is meant to be sent
	api    API
}

// stamp is a place in joined that holds 16 hex digits of a fork's own, the same for all stamps of a unit.
type stamp struct{ at, unit int }

const (
	stampDigits = 16
	bodyHead    = `{"messages":[`
	// stepMessages is how many messages each step of an agent adds: its call and the call's result.
	stepMessages = 2
)

// Body is a request's body in parts, to be written one after another.
type Body [3][]byte

// Len is the body's length in bytes.
func (b *Body) Len() int { return len(b[0]) + len(b[1]) + len(b[2]) }

// Messages is how many messages the history has.
func (h *History) Messages() int { return len(h.ends) }

// Steps is how many steps the history has after its first request.
func (h *History) Steps() int { return (len(h.ends) - h.first) / stepMessages }

// Body gives the request with the first n messages. Its parts alias the history.
func (h *History) Body(n int, stream bool) Body {
	return Body{[]byte(h.api.head()), h.joined[:h.ends[n-1]], []byte(h.api.tail(stream))}
}

// Step gives the request of a step; step 0 is the first request.
func (h *History) Step(step int, stream bool) Body { return h.Body(h.first+stepMessages*step, stream) }

// Message is the raw JSON of one message.
func (h *History) Message(i int) []byte {
	from := 0
	if i > 0 {
		from = h.ends[i-1] + 1
	}
	return h.joined[from:h.ends[i]]
}

// Fork is the same history with stamps of its own: another id, another conversation from the first user message on.
func (h *History) Fork(id uint64) *History {
	f := *h
	f.joined = append([]byte(nil), h.joined...)
	for _, s := range h.stamps {
		putHex(f.joined[s.at:s.at+stampDigits], mix(id<<20+uint64(s.unit)))
	}
	return &f
}

// mix spreads a number over 64 bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func putHex(dst []byte, x uint64) {
	for i := range dst {
		dst[i] = "0123456789abcdef"[x&15]
		x >>= 4
	}
}

// Plan says how long a history is.
type Plan struct {
	Size  int // bytes of the body that its steps are around
	Steps int // after the first request
	API   API
}

// NewHistory writes a history. The same plan gives the same text.
func NewHistory(p Plan) *History {
	w := newWriter(p.Size, 1)
	w.longest, w.h.api = max(400, p.Size/20), p.API
	if p.API == "" {
		w.system()
	}
	w.user()
	around := p.Steps / 2
	for len(bodyHead)+len(w.h.joined)+len(bodyTail)+around*w.unitSize() < p.Size {
		w.unit()
	}
	w.h.first = len(w.h.ends)
	for range p.Steps {
		w.unit()
	}
	return &w.h
}

// writer writes histories.
type writer struct {
	h       History
	rand    *rand.Rand
	longest int // bytes of a tool's result
	units   int
	text    []byte
	terms   []string
}

func newWriter(size int, kind uint64) writer {
	return writer{rand: rand.New(rand.NewPCG(uint64(size), kind)), terms: strings.Fields(vocabulary)}
}

func (w *writer) unitSize() int {
	if w.units == 0 {
		return min(w.longest, resultMedian) + 600
	}
	return len(w.h.joined) / (w.units + 1)
}

// message adds a message: formatted pieces and stamps.
func (w *writer) message(pieces ...any) {
	if len(w.h.ends) > 0 {
		w.h.joined = append(w.h.joined, ',')
	}
	for _, p := range pieces {
		switch p := p.(type) {
		case string:
			w.h.joined = append(w.h.joined, p...)
		case []byte: // text that is to be quoted, nil: none
			if p == nil {
				w.h.joined = append(w.h.joined, "null"...)
				continue
			}
			w.h.joined = rawjson.AppendQuote(w.h.joined, string(p))
		case stamped:
			w.stamp(int(p))
		}
	}
	w.h.ends = append(w.h.ends, len(w.h.joined))
}

// stamped is a stamp of a unit.
type stamped int

func (w *writer) stamp(unit int) {
	w.h.stamps = append(w.h.stamps, stamp{at: len(w.h.joined), unit: unit})
	w.h.joined = append(w.h.joined, "0000000000000000"...)
}

func (w *writer) system() {
	w.message(`{"role":"system","content":`, []byte(systemPrompt), `}`)
}

func (w *writer) user() {
	w.message(`{"role":"user","content":"Ticket `, stamped(0),
		`: the nightly import drops rows whose \"régio\" field holds a tab (\\t). Find out why, fix it, and add a test.\nDo not touch db/migrations."}`)
}

// unit adds an assistant message with a call, and the call's result.
func (w *writer) unit() {
	w.units++
	u := stamped(w.units)
	if w.h.api != "" {
		w.turn(u)
		return
	}
	w.message(`{"role":"assistant","content":`, w.thought(), `,"tool_calls":[{"id":"call_`, u,
		`","type":"function","function":{"name":"bash","arguments":`, w.arguments(), `}}]}`)
	w.message(`{"role":"tool","tool_call_id":"call_`, u, `","content":"run `, u, `\n`+w.output()+`"}`)
}

// output is a tool's result, quoted but without its quotes.
func (w *writer) output() string {
	quoted := rawjson.AppendQuote(nil, string(w.lines(w.resultSize())))
	return string(quoted[1 : len(quoted)-1])
}
