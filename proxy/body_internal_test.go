package proxy

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// still is a connection whose deadlines never pass.
type still struct{ net.Conn }

func (still) SetReadDeadline(time.Time) error { return nil }

// pieces reads a body as a socket would, a few bytes at a time.
type pieces struct {
	of    *bytes.Reader
	size  int
	after func(given int) // called after each piece
	given int
}

func (p *pieces) Read(b []byte) (int, error) {
	n, err := p.of.Read(b[:min(len(b), p.size)])
	p.given += n
	if p.after != nil {
		p.after(p.given)
	}
	return n, err
}

func newBodyReader(limit int64) *bodyReader {
	return &bodyReader{pool: &bufferPool{}, budget: newBudget(1 << 30), limit: limit, idle: time.Minute}
}

// TestBodyIsChargedForWhatItHolds reads bodies of many sizes. Each is complete and charged for its buffer, which is little larger than the
// body.
func TestBodyIsChargedForWhatItHolds(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	const limit = 64 << 20
	for _, size := range []int{
		1, minBuffer - 1, minBuffer, minBuffer + 1, 100_000, 1 << 20, 1<<20 + 1, 4_000_000, 4 << 20, 4<<20 + 1,
		5<<20 + 1, 9_000_000, 33 << 20, limit - 1, limit,
	} {
		for _, declared := range []int{size, -1} {
			br := newBodyReader(limit)
			want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			b, err := br.read(&pieces{of: bytes.NewReader(want), size: 200_000}, still{}, declared)
			if err != nil {
				t.Fatalf("%d bytes, declared %d: %v", size, declared, err)
			}
			if !bytes.Equal(b.bytes, want) {
				t.Fatalf("%d bytes, declared %d: they changed", size, declared)
			}
			held := br.budget.used
			if held != min(int64(cap(b.bytes)), limit) {
				t.Errorf("%d bytes, declared %d: charged %d, held %d", size, declared, held, cap(b.bytes))
			}
			most := max(size+size/4, 2*size) // what comes without a length doubles
			if declared > 0 && size > maxBuffer {
				most = size + size/4
			}
			if cap(b.bytes) > max(most, minBuffer) {
				t.Errorf("%d bytes, declared %d: hold %d", size, declared, cap(b.bytes))
			}
			if b.Release(); br.budget.used != 0 {
				t.Errorf("%d bytes, declared %d: not given back", size, declared)
			}
		}
	}
}

// TestBodyGrowsWithWhatComes declares a large body: only a few times the bytes received are held.
func TestBodyGrowsWithWhatComes(t *testing.T) {
	const size = 60 << 20
	br := newBodyReader(size)
	p := &pieces{of: bytes.NewReader(make([]byte, size)), size: 64 << 10}
	p.after = func(given int) {
		if held := br.budget.used; held > max(minBuffer, 5*int64(given)+5*int64(p.size)) {
			t.Fatalf("%d bytes are held after %d came", held, given)
		}
	}
	b, err := br.read(p, still{}, size)
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
}

// TestBodyEndings fails to read bodies in every way. Nothing is held afterwards.
func TestBodyEndings(t *testing.T) {
	const limit = 100_000
	for name, c := range map[string]struct {
		come, declared int
		room           int64 // in the budget
		status         int   // 0: read
		left           int   // unread
	}{
		"none":                   {0, 0, 1 << 30, 0, 0},
		"at the limit":           {limit, limit, 1 << 30, 0, 0},
		"at the limit, unsaid":   {limit, -1, 1 << 30, 0, 0},
		"too large":              {limit + 1, limit + 1, 1 << 30, http.StatusRequestEntityTooLarge, 0},
		"too large, unsaid":      {2 * limit, -1, 1 << 30, http.StatusRequestEntityTooLarge, 0},
		"far too large, unsaid":  {10 * limit, -1, 1 << 30, http.StatusRequestEntityTooLarge, 5 * limit},
		"no room":                {limit, limit, 20_000, http.StatusServiceUnavailable, 0},
		"no room for anything":   {limit, limit, 10_000, http.StatusServiceUnavailable, 0},
		"ends early":             {limit / 2, limit, 1 << 30, http.StatusBadRequest, 0},
		"ends before it begins":  {0, limit, 1 << 30, http.StatusBadRequest, 0},
		"nothing comes, no room": {0, limit, 0, http.StatusServiceUnavailable, 0},
	} {
		br := newBodyReader(limit)
		br.budget.limit = c.room
		p := &pieces{of: bytes.NewReader(make([]byte, c.come)), size: 16 << 10}
		b, err := br.read(p, still{}, c.declared)
		var e apiError
		switch errors.As(err, &e) {
		case true:
			if e.Status != c.status {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if err != nil || c.status != 0 || len(b.bytes) != c.come {
				t.Errorf("%s: %v", name, err)
				continue
			}
			b.Release()
		}
		if held := br.budget.used; held != 0 {
			t.Errorf("%s: %d bytes are held", name, held)
		}
		if left := p.of.Len(); left > 0 && left < c.left || c.left == 0 && left > 0 {
			t.Errorf("%s: %d bytes were left", name, left)
		}
	}
}

// TestBuffersHaveRoom checks that buffers up to maxBuffer are pooled by size, and others are allocated to measure.
func TestBuffersHaveRoom(t *testing.T) {
	for n, want := range map[int]int{
		1: minBuffer, minBuffer: minBuffer, minBuffer + 1: 2 * minBuffer, 100_000: 128 << 10,
		maxBuffer - 1: maxBuffer, maxBuffer: maxBuffer, maxBuffer + 1: maxBuffer + 1,
	} {
		if room(n) != want {
			t.Errorf("%d bytes have room for %d", n, room(n))
		}
	}
	p := &bufferPool{}
	for size := minBuffer; size <= 2*maxBuffer; size *= 2 {
		for range 2 {
			b := p.get(size)
			if len(b) != 0 || cap(b) != size {
				t.Errorf("%d bytes get %d of %d", size, len(b), cap(b))
			}
			p.put(append(b, 1))
		}
	}
	p.put(nil)
	p.put(make([]byte, 0, 3*minBuffer)) // not one of ours
	if got := cap(p.get(minBuffer)); got != minBuffer {
		t.Errorf("then %d", got)
	}
}

// TestTricklingBodiesAreCutOff has clients that never pause for long: a body that trickles in is cut off in time, one that is merely slow is read.
func TestTricklingBodiesAreCutOff(t *testing.T) {
	const size = 10 << 20
	for _, f := range []struct {
		burst int // bytes at once
		rate  int // and then bytes a second
		whole bool
		over  time.Duration // for all of it, at most
	}{
		{0, 1, false, 61 * time.Second},
		{size - 100_000, 1, false, 61 * time.Second},
		{0, minRate / 2, false, 3 * time.Minute},
		{size / 2, minRate / 2, false, 3 * time.Minute},
		{0, minRate, true, 11 * time.Minute},
		{size / 2, minRate, true, 6 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			var sending sync.WaitGroup
			defer sending.Wait()
			sending.Go(func() {
				defer client.Close()
				if _, err := client.Write(make([]byte, f.burst)); err != nil {
					return
				}
				for sent := f.burst; sent < size; sent += f.rate {
					if _, err := client.Write(make([]byte, min(f.rate, size-sent))); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			})
			br, begun := newBodyReader(64<<20), time.Now()
			b, err := br.read(server, server, size)
			server.Close()
			if (err == nil) != f.whole {
				t.Errorf("%d bytes a second: %v", f.rate, err)
			}
			if took := time.Since(begun); took > f.over {
				t.Errorf("%d bytes a second: it took %s", f.rate, took)
			}
			if err == nil {
				b.Release()
			}
			if held := br.budget.used; held != 0 {
				t.Errorf("%d bytes a second: %d are held", f.rate, held)
			}
		})
	}
}
