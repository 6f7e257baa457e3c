package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
)

// Compacts says whether an upstream compacts histories into items of its own.
type Compacts int

// What is known of an upstream.
const (
	CompactsPerhaps Compacts = iota // it is found out
	CompactsItself
	CompactsNot // the proxy does
)

// compaction is a client's wish for one.
type compaction struct {
	wanted   bool
	streamed bool
	ours     bool   // upstream is asked for a record in its place
	record   string // that the client got for it
	managed  bool   // upstream refused to manage the history by itself

	dialect.Managed // in the place of that, and the model as the client spells it
}

// What is remembered of upstreams, and what is read of an answer, in bytes.
const (
	compactsKept = 1024
	compactsFor  = time.Hour
	mostRecord   = 8 << 20
)

// compactors remembers which upstreams compact, or manage histories by themselves, by base URL and model.
type compactors = lru.LRU[string, Compacts]

func newCompactors() *compactors { return lru.NewLRU[string, Compacts](compactsKept, nil, compactsFor) }

// compactor is the dialect of a request in which clients ask for compactions, nil if it has none.
func (r *request) compactor() dialect.Compactor {
	d, _ := r.asked.dialect.(dialect.Compactor)
	return d
}

// unseal puts records that this proxy gave to its client into the body as the messages that they stand for. Upstream knows no such
// items: one that does not open is an error.
func (r *request) unseal(d dialect.Compactor) error {
	body, err := d.Unseal(r.body.bytes, engine.SealedMark, func(sealed string) (string, error) {
		return r.server.o.Engine.Unseal(r.ctx, r.tenant.Name, sealed)
	})
	switch {
	case err == nil:
		r.body.replace(body)
		return nil
	case errors.Is(err, engine.ErrForeign), errors.Is(err, engine.ErrOldKey):
		r.seen.record.Condensed.Compaction = CompactionRefused
		e := badRequest("invalid_compaction",
			"A compaction item does not open: "+err.Error()+". Leave the item out and send the history, or begin anew.")
		e.Param = "input"
		return e
	case r.ctx.Err() != nil:
		return upstreamError(r.ctx, err)
	}
	r.server.degraded.enter(err)
	return errCompactionUnavailable
}

// wantCompaction sees whether the client asks upstream for a compaction, and asks for a record where upstream makes none.
func (r *request) wantCompaction(d dialect.Compactor) {
	c := &r.passed.compaction
	if c.ours {
		return
	}
	if c.Model, c.wanted = d.Compacts(r.body.bytes, r.asked.compact); c.wanted && r.upstreamCompacts() == CompactsNot {
		r.askForRecord(d)
	}
}

func (r *request) askForRecord(d dialect.Compactor) {
	c := &r.passed.compaction
	var body []byte
	question := condense.Handoff()
	if strings.TrimSpace(c.Instructions) != "" {
		question += "\n\n" + c.Instructions
	}
	body, c.streamed = d.Ask(r.body.bytes, question)
	r.body.replace(body)
	r.asked.path = strings.TrimSuffix(r.asked.path, "/compact")
	c.ours = true
}

func (r *request) upstreamCompacts() Compacts {
	return r.upstreamDoes(r.live.compactors, r.passed.compaction.Model)
}

// upstreamDoes tells what is configured of upstream, or remembered. What a tenant that observes asks for goes as it came.
func (r *request) upstreamDoes(known *compactors, model string) Compacts {
	switch set := r.tenant.Upstream.Compacts; {
	case r.tenant.Observe:
		return CompactsItself
	case set != CompactsPerhaps:
		return set
	}
	does, _ := known.Get(r.upstreamOf(model))
	return does
}

// upstreamOf names what is remembered of the request's upstream: gateways have several behind one address.
func (r *request) upstreamOf(model string) string {
	return r.tenant.Upstream.BaseURL.String() + " " + model
}

// manage takes the wish that upstream manage the history by itself out of the body, where it is known that it does not. Where a limit
// for compactions is a part of that, it is a limit for condensations.
func (r *request) manage(d dialect.Compactor) {
	if r.tenant.Upstream.Compacts != CompactsNot && r.live.managers.Len() == 0 {
		return
	}
	if m := d.Manages(r.body.bytes); m.Rest != nil && r.upstreamDoes(r.live.managers, m.Model) == CompactsNot {
		r.body.replace(m.Rest)
		r.passed.compaction.Managed = m
	}
}

// managed looks whether upstream refused to manage the history by itself, and remembers that it does.
func (r *request) managed(said refusal) bool {
	d := r.compactor()
	if !said.managed || d == nil || r.passed.compaction.managed {
		return false
	}
	m := d.Manages(r.body.bytes)
	if m.Rest == nil || r.upstreamDoes(r.live.managers, m.Model) == CompactsItself {
		return false
	}
	r.live.managers.Add(r.upstreamOf(m.Model), CompactsNot)
	r.passed.compaction.managed = true
	return true
}

// answer takes a recognised request to the answer that its client gets. Who asks for a compaction waits for all of it.
func (r *request) answer() (resp *http.Response, err error) {
	asked := &r.passed.compaction
	if err := r.pause(); err != nil {
		return nil, err
	}
	if !asked.wanted || r.upstreamCompacts() == CompactsItself {
		return r.managedAnswer()
	}
	r.patiently(func() {
		if resp, err = r.managedAnswer(); err == nil { //nolint:bodyclose // the relay closes it
			resp, err = r.compacted(resp) //nolint:bodyclose // likewise
		}
	})
	switch {
	case asked.record != "":
		r.seen.record.Condensed.Compaction = CompactionMade
	case asked.ours:
		r.seen.record.Condensed.Compaction = CompactionFailed
	}
	return resp, err
}

// pause asks for a record where upstream would have answered with a compaction alone, as the history is longer than its client wants.
func (r *request) pause() error {
	c := &r.passed.compaction
	if !c.Pauses || c.wanted || r.turn == nil || !r.turn.Exceeds(c.Limit) {
		return nil
	}
	c.wanted = true
	r.askForRecord(r.compactor())
	return r.recognise()
}

// managedAnswer is answer, but for compactions that are asked for.
func (r *request) managedAnswer() (*http.Response, error) {
	resp, err := r.exchange()
	if err == nil && r.passed.compaction.managed {
		resp, err = r.anew(resp)
	}
	return resp, err
}

// anew takes a request whose body is another one now to an answer, in the place of one that it has got.
func (r *request) anew(resp *http.Response) (*http.Response, error) {
	_ = resp.Body.Close()
	r.unanswered() // another turn begins
	r.seen.record.Unread = ""
	if err := r.recognise(); err != nil {
		return nil, err
	}
	return r.exchange()
}

// compacted gives the client the compaction that it asked for: upstream's, or where upstream makes none, one of ours.
func (r *request) compacted(resp *http.Response) (*http.Response, error) {
	d := r.compactor()
	if !r.passed.compaction.ours {
		if !r.failsToCompact(resp, d) {
			return resp, nil
		}
		r.askForRecord(d)
		var err error
		if resp, err = r.anew(resp); err != nil {
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	return r.giveRecord(resp, d)
}

// failsToCompact reports whether upstream's answer shows that it makes no compactions, and remembers what it shows.
func (r *request) failsToCompact(resp *http.Response, d dialect.Compactor) bool {
	served := resp.StatusCode == http.StatusOK
	if !served && !refuses(resp.StatusCode) && resp.StatusCode != http.StatusNotFound || len(codings(resp.Header)) > 0 {
		return false
	}
	head, whole := readWhole(resp)
	if served && d.Compacted(head) {
		r.live.compactors.Add(r.upstreamOf(r.passed.compaction.Model), CompactsItself)
		return false
	}
	_, long := overflow.Recognise(resp.StatusCode, resp.Header.Get("Content-Type"), head)
	if long || !whole || served && finishOf(r.read(resp, head).Finish) != finished {
		return false // it failed for another reason
	}
	if served || bytes.Contains(head, []byte("compact")) {
		r.live.compactors.Add(r.upstreamOf(r.passed.compaction.Model), CompactsNot)
	}
	return true
}

// readWhole reads an answer, and leaves the response as it was. It reports whether all of it was read.
func readWhole(resp *http.Response) (head []byte, whole bool) {
	head, err := io.ReadAll(io.LimitReader(resp.Body, mostRecord))
	putBack(resp, head, err)
	return head, err == nil && len(head) < mostRecord
}

// giveRecord puts the record that upstream's answer holds into an item.
func (r *request) giveRecord(resp *http.Response, d dialect.Compactor) (*http.Response, error) {
	head, whole := readWhole(resp)
	_ = resp.Body.Close()
	answer := r.read(resp, head)
	text, err := condense.ReadHandoff(condense.Reply{Text: answer.Text, Finish: finishOf(answer.Finish)})
	if err != nil || !whole {
		return nil, errNoRecord
	}
	record := r.turn.Record(text)
	sealed, err := r.server.o.Engine.Seal(context.WithoutCancel(r.ctx), r.tenant.Name, record)
	if err != nil {
		r.server.degraded.enter(err)
		return nil, errCompactionUnavailable
	}
	c := &r.passed.compaction
	body := d.Compaction(dialect.Compaction{
		ID: strings.ToLower(rand.Text()), Model: c.Model, Sealed: sealed, Usage: answer.Usage, Streamed: c.streamed, Alone: r.asked.compact,
	})
	c.record = record
	r.seen.record.Condensed.Did = "compaction"
	resp.Header.Set("Content-Type", "application/json")
	if c.streamed {
		resp.Header.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	replaceBody(resp, body)
	return resp, nil
}

// read reads an answer that has come.
func (r *request) read(resp *http.Response, body []byte) dialect.Answer {
	tee := r.asked.dialect.Tee(streamed(resp.Header))
	tee.Write(body)
	return tee.Answer()
}

// finished is what Chat Completions call the end of an answer that is whole.
const finished = "stop"

// finishOf is what Chat Completions call the end of an answer.
func finishOf(reason string) string {
	switch reason {
	case "completed", "end_turn", "stop_sequence":
		return finished
	case "max_output_tokens", "max_tokens":
		return "length"
	}
	return reason
}
