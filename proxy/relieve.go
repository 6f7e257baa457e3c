package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// relieves is how many times a request that overflowed is condensed and sent again.
const relieves = 3

// overflowRead bounds what is read of an error to recognise it, in bytes.
const overflowRead = 64 << 10

// relieve condenses a request that overflowed upstream's context window, and sends it again. It gives the last answer,
// whatever that is: if nothing helps, upstream's own error.
func (s *Server) relieve(t *turn, resp *http.Response) (*http.Response, error) {
	for range relieves {
		over, is := s.examine(t, resp)
		if !is || over.ByOutput || t.wish == "off" || t.tenant.Observe {
			return resp, nil
		}
		if t.logged != nil {
			<-t.logged // the log of this request is written: what follows builds on it
		}
		before := s.size(t)
		s.learn(t, over, before)
		if !s.smaller(t, before) {
			return resp, nil
		}
		t.seen.meters.relieved.Inc()
		_ = resp.Body.Close()
		var err error
		if resp, err = s.send(t.request, t.forwarded()); err != nil {
			return nil, err
		}
		if over.Limit == 0 && resp.StatusCode == http.StatusOK {
			s.learnBound(t, before)
		}
	}
	return resp, nil
}

// smaller makes the view smaller by all means, and reports whether it is.
func (s *Server) smaller(t *turn, before session.Size) bool {
	s.condenseHard(t)
	if !s.fits(t) {
		s.trimHard(t)
	}
	return s.size(t).Tokens < before.Tokens
}

// examine looks whether an answer is an overflow. An answer that stops coming is given up as it is while it is relayed.
func (s *Server) examine(t *turn, resp *http.Response) (overflow.Overflow, bool) {
	if s.o.Limits.StreamIdle > 0 {
		silent := time.AfterFunc(s.o.Limits.StreamIdle, func() { t.cancel(errSilent) })
		defer silent.Stop()
	}
	return overflowed(resp)
}

// overflowed recognises an overflow, and leaves the response as it was.
func overflowed(resp *http.Response) (overflow.Overflow, bool) {
	if !suspicious(resp) {
		return overflow.Overflow{}, false
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, overflowRead))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &spliced{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: resp.Body}
	return overflow.Recognise(resp.StatusCode, resp.Header.Get("Content-Type"), head)
}

// suspicious reports whether an answer may be an overflow and can be read to find out: an error, or a short whole answer,
// since some gateways tell of errors with status 200. A stream is handed on as it comes.
func suspicious(resp *http.Response) bool {
	if resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	short := resp.ContentLength > 0 && resp.ContentLength <= overflowRead && !streamed(resp.Header)
	return resp.StatusCode >= http.StatusBadRequest || resp.StatusCode == http.StatusOK && short
}

// spliced is a body of which the beginning has been read before.
type spliced struct {
	io.Reader
	io.Closer
}

// failing gives an error that was met before.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// condenseHard condenses because upstream refused the request for its length.
func (s *Server) condenseHard(t *turn) {
	t.need = condense.Need{Reason: session.ReasonOverflow, Hard: true}
	decision := t.tenant.Condenser.Condense(s.input(t))
	made := decision.Job != nil && s.make(t, decision.Job)
	t.need = condense.Need{}
	if !made {
		return
	}
	if shape := t.tenant.Condenser.Condense(s.input(t)); shape.View != nil {
		t.show(*shape.View)
	}
}

// fits reports whether the view should now fit upstream's window.
func (s *Server) fits(t *turn) bool {
	in := s.input(t)
	return in.Total+min(in.Reserved, in.Window/2) <= in.Window
}

// The lengths, in characters, to which newly arrived tool results are cut when nothing else is left to forget.
const (
	longestTrim  = 16000
	shortestTrim = 500
)

// trimHard cuts the tool results that have just come, as little as makes the view fit: they are all that is left.
func (s *Server) trimHard(t *turn) {
	in := s.input(t)
	var last condense.Job
	for length := longestTrim; length >= shortestTrim; length /= 2 {
		job := condense.ToolOutputTrim{MaxEventLength: length}.Condense(in).Job
		if job == nil {
			continue
		}
		last = job
		result, err := job.Run(t.ctx)
		if err == nil && result.Condensation.After.Tokens+min(in.Reserved, in.Window/2) <= in.Window {
			break
		}
	}
	if last != nil {
		s.make(t, last)
	}
}

// learn takes what an overflow tells of the model: for this turn, and, where upstream named its window, for those to come.
func (s *Server) learn(t *turn, over overflow.Overflow, sent session.Size) {
	if over.Prompt > 0 && !over.AtLeast && sent.Tokens > 0 {
		s.o.Tokens.Observe(t.split.Model, sent.Tokens, over.Prompt)
		t.scale = float64(over.Prompt) / float64(sent.Tokens)
	}
	window := over.Limit
	if window == 0 {
		window = s.adjust(t, sent.Tokens) * 9 / 10 // it is less than what was sent
	}
	if t.model.Window == 0 || window < t.model.Window {
		t.model.Window = window
	}
	if over.Limit > 0 {
		s.keepWindow(t, over.Limit)
	}
}

// learnBound remembers that a history of this size was too long, now that it is known to be the history's fault: what
// was made of it fitted.
func (s *Server) learnBound(t *turn, sent session.Size) { s.keepWindow(t, s.adjust(t, sent.Tokens)) }

func (s *Server) keepWindow(t *turn, window int) {
	s.learnt.set(t.tenant.Name, t.split.Model, window, s.o.Now())
	s.o.Log.Info("context window learnt", zap.String("tenant", t.tenant.Name), zap.String("model", head(t.split.Model)),
		zap.Int("window", window))
}

// learnt is the context windows that upstreams told of in their errors, by tenant and model. It is bounded, since a
// client picks the model's name, and forgets after a while: servers change.
type learnt struct {
	windows *lru.Cache[learntKey, learntWindow]
}

type learntKey struct{ tenant, model string }

type learntWindow struct {
	tokens int
	at     time.Time
}

const (
	learntKept = 1024
	learntFor  = 6 * time.Hour
	learntMin  = 512 // tokens; no model has a smaller window
)

func newLearnt() (*learnt, error) {
	windows, err := lru.New[learntKey, learntWindow](learntKept)
	if err != nil {
		return nil, fmt.Errorf("new window cache: %w", err)
	}
	return &learnt{windows: windows}, nil
}

func (l *learnt) set(tenant, model string, tokens int, now time.Time) {
	l.windows.Add(learntKey{tenant, head(model)}, learntWindow{max(tokens, learntMin), now})
}

// window is the smaller of what was configured and what was learnt.
func (l *learnt) window(tenant, model string, configured int, now time.Time) int {
	w, ok := l.windows.Get(learntKey{tenant, head(model)})
	if ok && now.Sub(w.at) < learntFor && (configured == 0 || w.tokens < configured) {
		return w.tokens
	}
	return configured
}
