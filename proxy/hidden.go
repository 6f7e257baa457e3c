package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// strain takes the calls of the proxy's own tools out of the answer to a request that offers some, and meets them: the client gets one
// answer for all that upstream is asked for meanwhile.
func (r *request) strain(resp *http.Response) (*http.Response, error) {
	if !r.strains(resp) {
		return resp, nil
	}
	r.passed.strainer = r.turn.Strain(streamed(resp.Header))
	if !streamed(resp.Header) {
		return r.strainWhole(resp)
	}
	out := *resp
	out.ContentLength = -1
	out.Body = &strained{r: r, from: resp, buffer: make([]byte, 8<<10)}
	return &out, nil
}

func (r *request) strains(resp *http.Response) bool {
	return r.turn != nil && !r.asked.counts && r.turn.Offers() && resp.StatusCode == http.StatusOK && len(codings(resp.Header)) == 0
}

// strainWhole is strain for an answer that is not streamed.
func (r *request) strainWhole(resp *http.Response) (*http.Response, error) {
	s := r.passed.strainer
	for {
		body, whole := r.readWhole(resp)
		if !whole {
			r.passed.strainer = nil
			return resp, nil
		}
		s.Write(body)
		if !r.reply() {
			return replaced(resp, body, s.Finish()), nil
		}
		_ = resp.Body.Close()
		var err error
		if resp, err = r.again(); err != nil || resp.StatusCode != http.StatusOK || streamed(resp.Header) {
			return resp, err
		}
		r.nextAnswer()
	}
}

func (r *request) nextAnswer() {
	r.passed.strainer.Next()
	r.passed.replied = false
}

// replaced gives a response with another body, if it is another.
func replaced(resp *http.Response, body, by []byte) *http.Response {
	if bytes.Equal(body, by) {
		return resp
	}
	_ = resp.Body.Close()
	resp.Header.Set("Content-Length", strconv.Itoa(len(by)))
	resp.TransferEncoding, resp.ContentLength, resp.Body = nil, int64(len(by)), io.NopCloser(bytes.NewReader(by))
	return resp
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
		r.seen.hidden(len(said.Calls))
	}
	if again {
		r.passed.again++
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

// again asks upstream again, after hidden calls were met.
func (r *request) again() (*http.Response, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, upstreamError(r.ctx, err)
	}
	resp, err := r.send(r.forwarded())
	if err == nil {
		resp, err = r.persist(resp)
	}
	return resp, err
}

// strained is the stream that a client gets. It is read, and closed, by the relay.
type strained struct {
	r      *request
	from   *http.Response
	buffer []byte // for what comes from upstream
	out    []byte // for the client
	end    error  // after that; nil: upstream's answer goes on
}

// Read implements io.Reader.
func (s *strained) Read(p []byte) (int, error) {
	for len(s.out) == 0 && s.end == nil {
		n, err := s.from.Body.Read(s.buffer)
		s.out = s.r.passed.strainer.Write(s.buffer[:n])
		switch {
		case err == io.EOF:
			s.turn()
		case err != nil:
			s.end = err
		}
		if n == 0 && err == nil {
			return 0, nil
		}
	}
	if len(s.out) == 0 {
		return 0, s.end
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// turn is when upstream's answer has ended: another one follows, or it is the end of the client's.
func (s *strained) turn() {
	if rel := s.r.passed.relay; rel != nil && rel.timer != nil { // upstream is not silent: it was not asked yet
		rel.timer.Stop()
		defer rel.timer.Reset(rel.idle)
	}
	if !s.r.reply() {
		s.out, s.end = append(s.out, s.r.passed.strainer.Finish()...), io.EOF
		return
	}
	_ = s.from.Body.Close()
	resp, err := s.r.again() //nolint:bodyclose // it becomes from, which is closed
	switch {
	case err != nil:
		s.end = err
		if e := s.r.failedWith(err); e != nil {
			s.out = append(s.out, s.r.asked.speaks.Event(e.body(s.r.asked.speaks))...)
		}
		return
	case resp.StatusCode != http.StatusOK || !streamed(resp.Header):
		body, _ := s.r.readWhole(resp)
		resp = asEvent(resp, body, s.r.asked.speaks) //nolint:bodyclose // likewise
		told, _ := io.ReadAll(resp.Body)
		s.out, s.end = append(s.out, told...), errBroken
	}
	s.from = resp
	s.r.nextAnswer()
}

// Close implements io.Closer.
func (s *strained) Close() error {
	return s.from.Body.Close() //nolint:wrapcheck // the body's own
}
