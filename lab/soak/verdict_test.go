package soak

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// told is an answer as upstream wrote it.
const told = "data: {}\n\ndata: [DONE]\n\n"

// TestVerdict: how an exchange ended is judged by what was planned for it and by what upstream wrote.
func TestVerdict(t *testing.T) {
	cut, upstreams := errors.New("unexpected EOF"), http.Header{"Openai-Version": {"1"}}
	limited := http.Header{"Openai-Version": {"1"}, "Retry-After": {retryAfter}}
	half := told[:10]
	for name, c := range map[string]struct {
		fault   fault
		status  int    // of upstream; 0: nothing reached it
		written string // by upstream
		got     got
		doomed  bool
		took    time.Duration
		want    string // ending, or the beginning of a rule
	}{
		"served":                     {status: 200, written: told, got: got{200, upstreams, []byte(told), nil, true}, want: "served"},
		"late but served":            {fault: slowStream, status: 200, written: told, got: got{200, upstreams, []byte(told), nil, true}, want: "served"},
		"useless":                    {fault: malformed, status: 200, written: told, got: got{200, upstreams, []byte(told), nil, true}, want: "useless: upstream: malformed SSE"},
		"another answer":             {status: 200, written: told, got: got{200, upstreams, []byte("data: {x}"), nil, true}, want: "the client gets what upstream sent"},
		"half of it, as if whole":    {status: 200, written: told, got: got{200, upstreams, []byte(half), nil, true}, want: "an answer that ends is whole"},
		"another status":             {status: 200, written: told, got: got{201, upstreams, []byte(told), nil, true}, want: "upstream's status comes back"},
		"broken for no reason":       {status: 200, written: told, got: got{200, upstreams, []byte(half), cut, true}, want: "a request that upstream would have served"},
		"an error of our own":        {status: 200, written: told, got: got{502, nil, []byte("{}"), nil, true}, want: "a request that upstream would have served"},
		"never sent on":              {got: got{500, nil, []byte("{}"), nil, true}, want: "a request reaches upstream"},
		"refused by a living one":    {got: got{err: cut}, want: "a request reaches upstream"},
		"refused by a killed one":    {got: got{err: cut}, doomed: true, want: "connection refused: the replica was killed"},
		"killed":                     {status: 200, written: told, got: got{200, upstreams, []byte(half), cut, true}, doomed: true, want: "broken: the replica was killed"},
		"killed, and another answer": {status: 200, written: told, got: got{200, upstreams, []byte("x"), nil, true}, doomed: true, want: "the client gets what upstream sent"},
		"broken":                     {fault: resetLate, status: 200, written: half, got: got{200, upstreams, []byte(half), cut, true}, want: "broken: upstream: reset in the answer"},
		"half, clean":                {fault: halfStream, status: 200, written: half, got: got{200, upstreams, []byte(half), nil, true}, want: "cut short: upstream: half a stream, ended cleanly"},
		"half, clean, but broken":    {fault: halfStream, status: 200, written: half, got: got{200, upstreams, []byte(half), cut, true}, want: "an end that upstream framed is relayed"},
		"reset, but clean":           {fault: resetLate, status: 200, written: half, got: got{200, upstreams, []byte(half), nil, true}, want: "what upstream broke off is seen"},
		"reset, and 502":             {fault: resetEarly, got: got{502, nil, []byte("{}"), nil, true}, status: -1, want: "broken: upstream: reset before the header"},
		"429":                        {fault: rateLimited, status: 429, written: "{}", got: got{429, limited, []byte("{}"), nil, true}, want: "refused: upstream: 429"},
		"429 without Retry-After":    {fault: rateLimited, status: 429, written: "{}", got: got{429, upstreams, []byte("{}"), nil, true}, want: "Retry-After comes back"},
		"429 made another":           {fault: rateLimited, status: 429, written: "{}", got: got{503, nil, []byte("{}"), nil, true}, want: "upstream's own error comes back"},
		"never sent on, in time":     {got: got{504, nil, []byte("{}"), nil, true}, took: time.Hour, want: endLate.String()},
	} {
		t.Run(name, func(t *testing.T) {
			_, l := sample()
			l.stream = true
			caller := &caller{soak: &soak{tally: newTally()}}
			x := l.exchange()
			x.fault = c.fault
			began := time.Now().Add(-c.took)
			if c.status != 0 {
				d := x.deliver(x.sent)
				d.status, d.header, d.began, d.ended = max(c.status, 0), limited, time.Now(), time.Now()
				d.written = []byte(c.written)
			}
			on := &replica{}
			on.doomed.Store(c.doomed)
			ending := caller.verdict(x, l, on, c.got, began)
			if is := rules(caller.tally); ending == endWrong && !strings.HasPrefix(is, c.want) || ending != endWrong && ending.String() != c.want {
				t.Errorf("%q %q, want %q", ending, is, c.want)
			}
		})
	}
}
