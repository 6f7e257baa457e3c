package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// strain takes the calls of the proxy's own tools out of the answer to a request that offers some, and meets them: the client gets one
// answer for all that upstream is asked for meanwhile.
func (r *request) strain(resp *http.Response) (*http.Response, error) {
	if r.turn == nil || r.asked.counts || !r.turn.Offers() || resp.StatusCode != http.StatusOK || len(codings(resp.Header)) > 0 {
		return resp, nil
	}
	streams := streamed(resp.Header)
	r.passed.strainer, r.passed.tee = r.turn.Strain(streams), r.asked.dialect.Tee(streams)
	if !streams {
		return r.strainWhole(resp)
	}
	s := &strained{r: r, from: resp.Body, buffer: make([]byte, 8<<10), every: cmp.Or(r.server.o.Limits.KeepAlive, math.MaxInt64)}
	s.alive = time.NewTicker(s.every)
	resp.ContentLength, resp.Body = -1, s
	return resp, nil
}

// strainWhole is strain for an answer that is not streamed.
func (r *request) strainWhole(resp *http.Response) (*http.Response, error) {
	s := r.passed.strainer
	for {
		body, whole := readWhole(resp)
		switch {
		case len(body) == mostRecord:
			_ = resp.Body.Close()
			return nil, errTooLongToRead
		case !whole:
			r.passed.strainer = nil
			return resp, nil
		}
		s.Write(body)
		r.passed.tee.Write(body)
		if !r.reply() {
			if shown := s.Finish(); !bytes.Equal(body, shown) {
				replaceBody(resp, shown)
			}
			return resp, nil
		}
		_ = resp.Body.Close()
		var err error
		if resp, err = r.again(false); err != nil || resp.StatusCode != http.StatusOK || streamed(resp.Header) {
			return resp, err
		}
	}
}

// reply meets the hidden calls of an answer that has ended, once. It reports whether upstream is to be asked again.
func (r *request) reply() (again bool) {
	if r.passed.replied {
		return false
	}
	r.passed.replied = true
	said := r.passed.strainer.Close()
	r.orAsItCame(func() {
		report, more := r.turn.Reply(r.ctx, said)
		again = more
		r.note(report)
	})
	if r.turn != nil {
		r.seen.record.Condensed.Hidden += len(said.Calls)
	}
	return again
}

// echo is the answer as the client will send it back, nil where that is what upstream has to be shown.
func (r *request) echo() []byte {
	if r.passed.strainer == nil {
		return nil
	}
	r.reply()
	return r.passed.strainer.Echo()
}

// again asks upstream again, after hidden calls were met. It is charged for like a request, once the last answer is settled.
func (r *request) again(streams bool) (*http.Response, error) {
	r.passed.again++
	if minute, budgets := r.settle(http.StatusOK, r.passed.tee.Answer()); minute != nil {
		minute()
		budgets()
	}
	r.passed.strainer.Next()
	r.passed.tee, r.passed.replied = r.asked.dialect.Tee(streams), false
	if err := r.ctx.Err(); err != nil {
		return nil, upstreamError(r.ctx, err)
	}
	resp, err := r.buy()
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		r.giveBack()
	}
	return resp, err
}

// last is what upstream answered last of what the client was told.
func (r *request) last(told dialect.Answer) dialect.Answer {
	if r.passed.tee != nil {
		return r.passed.tee.Answer()
	}
	return told
}

// strained is the stream that a client gets. It is read, and closed, by the relay.
type strained struct {
	r      *request
	from   io.ReadCloser // upstream's answer
	buffer []byte        // for what comes from there
	out    []byte        // for the client
	end    error         // after that; nil: upstream's answer goes on

	every time.Duration  // how long the client may hear nothing
	alive *time.Ticker   // when it is to hear something
	ended bool           // upstream's answer has
	over  chan following // gives what follows; nil: nothing was done to find out, since the client has not got all yet
}

// following is what follows an answer of upstream's: the end, or another one.
type following struct {
	out  []byte
	end  error
	from io.ReadCloser // nil: the end
}

// Read implements io.Reader.
func (s *strained) Read(p []byte) (int, error) {
	for len(s.out) == 0 && s.end == nil {
		if s.ended {
			s.wait()
			continue
		}
		n, err := s.from.Read(s.buffer)
		if n == 0 && err == nil {
			return 0, nil
		}
		s.hear(s.buffer[:n], err)
	}
	if len(s.out) == 0 {
		return 0, s.end
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// hear takes what has come from upstream. Where the client gets nothing of it for long, it gets a comment.
func (s *strained) hear(p []byte, err error) {
	if len(p) > 0 {
		s.r.seen.firstByte()
	}
	s.r.passed.tee.Write(p)
	s.out = s.r.passed.strainer.Write(p)
	switch {
	case errors.Is(err, io.EOF):
		s.ended = true
	case err != nil:
		s.end = err
	case len(s.out) > 0:
		s.alive.Reset(s.every)
	default:
		select {
		case <-s.alive.C:
			s.out = []byte(keptAlive)
		default:
		}
	}
}

// wait waits for what follows upstream's answer. Upstream is not silent meanwhile: it may not have been asked yet.
func (s *strained) wait() {
	if s.over == nil {
		s.over = make(chan following, 1)
		s.alive.Reset(s.every)
		go func() {
			then := following{end: errDefect}
			s.r.server.o.survives(func() { then = s.follow() })
			s.over <- then
		}()
	}
	select {
	case <-s.alive.C:
		s.out = []byte(keptAlive)
	case then := <-s.over:
		s.out, s.end, s.ended, s.over = then.out, then.end, false, nil
		if then.from != nil {
			s.from = then.from
		}
	}
}

// follow finds out what follows upstream's answer, which has ended. Nothing else uses the request meanwhile.
func (s *strained) follow() following {
	if !s.r.reply() {
		return following{out: s.r.passed.strainer.Finish(), end: io.EOF}
	}
	_ = s.from.Close()
	resp, err := s.r.again(true) //nolint:bodyclose // its body becomes from, which is closed
	switch {
	case err != nil:
		return following{out: s.r.tell(err), end: err}
	case resp.StatusCode != http.StatusOK || !streamed(resp.Header):
		return following{out: asEvent(resp, s.r.asked.speaks), end: errBroken, from: resp.Body}
	}
	return following{from: resp.Body}
}

// Close implements io.Closer.
func (s *strained) Close() error {
	s.alive.Stop()
	if s.over != nil {
		s.r.cancel(errClientGone)
		if then := <-s.over; then.from != nil {
			s.from = then.from
		}
	}
	return s.from.Close() //nolint:wrapcheck // the body's own
}
