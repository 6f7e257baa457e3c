package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// History is one agent's conversation, as a request's body holds it, with steps that are still to come. Forks share their
// text and differ in every message but the system prompt.
type History struct {
	joined []byte // the messages, parted by commas
	ends   []int  // of each message in joined
	first  int    // messages of the shortest request that is meant to be sent
	api    API
}

const (
	// stamp stands for 16 hex digits of a fork's own: once in the user's message, and unitStamps times in each unit, in which all are the same.
	stamp      = "0000000000000000"
	unitStamps = 3
	bodyHead   = `{"messages":[`
	// stepMessages is how many messages each step of an agent adds: its call and the call's result.
	stepMessages = 2
)

// Steps is how many steps the history has after its first request.
func (h *History) Steps() int { return (len(h.ends) - h.first) / stepMessages }

// Step gives the body of a step's request; step 0 is the first request.
func (h *History) Step(step int, stream bool) []byte {
	n := h.first + stepMessages*step
	return slices.Concat([]byte(h.api.head()), h.joined[:h.ends[n-1]], []byte(h.api.tail(stream)))
}

// Fork is the same history with stamps of its own: another id, another conversation from the first user message on.
func (h *History) Fork(id uint64) *History {
	f := *h
	f.joined = bytes.Clone(h.joined)
	rest := f.joined
	for n := unitStamps - 1; ; n++ {
		at := bytes.Index(rest, []byte(stamp))
		if at < 0 {
			return &f
		}
		copy(rest[at:], fmt.Appendf(nil, "%016x", mix(id<<20+uint64(n/unitStamps))))
		rest = rest[at+len(stamp):]
	}
}

// mix spreads a number over 64 bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Plan says how long a history is.
type Plan struct {
	Size  int // bytes of the body that its steps are around
	Steps int // after the first request
	API   API
}

// NewHistory writes a history. The same plan gives the same text.
func NewHistory(p Plan) *History {
	w := &writer{
		History: History{api: p.API}, rand: rand.New(rand.NewPCG(uint64(p.Size), 1)), terms: strings.Fields(vocabulary), longest: max(400, p.Size/20),
	}
	if p.API == "" {
		w.message(`{"role":"system","content":` + quote(systemPrompt) + `}`)
	}
	w.message(p.API.person(`Ticket ` + stamp +
		`: the nightly import drops rows whose \"régio\" field holds a tab (\\t). Find out why, fix it, and add a test.\nDo not touch db/migrations.`))
	around := p.Steps / 2
	for len(bodyHead)+len(w.joined)+len(bodyTail)+around*w.unitSize() < p.Size {
		w.unit()
	}
	w.first = len(w.ends)
	for range p.Steps {
		w.unit()
	}
	return &w.History
}

// writer writes a history.
type writer struct {
	History
	rand    *rand.Rand
	longest int // bytes of a tool's result
	units   int
	text    []byte
	terms   []string
}

func (w *writer) unitSize() int {
	if w.units == 0 {
		return min(w.longest, resultMedian) + 600
	}
	return len(w.joined) / (w.units + 1)
}

func (w *writer) message(raw string) {
	if len(w.ends) > 0 {
		w.joined = append(w.joined, ',')
	}
	w.joined = append(w.joined, raw...)
	w.ends = append(w.ends, len(w.joined))
}

// quote writes a text as JSON.
func quote(text string) string { return string(rawjson.AppendQuote(nil, text)) }

// unit adds what a model says, with a call, and the call's result, as the protocol has them.
func (w *writer) unit() {
	w.units++
	call, result, end := w.api.unit(w.thought(), w.arguments())
	w.message(call)
	output := quote(string(w.lines(w.resultSize())))
	w.message(result + `"run ` + stamp + `\n` + output[1:] + end)
}
