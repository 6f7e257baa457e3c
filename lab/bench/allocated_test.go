package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCalibrate: what asking allocates is known well, though a single answer tells a counter that runs late by as much, and though
// the target has other work for a while.
func TestCalibrate(t *testing.T) {
	const objects, bytes = 2000, 200_000
	asked, own := 0, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		if asked < 50 {
			own += 5000 // work that it still has to do
		}
		late := asked * 7919 % 1000
		fmt.Fprintf(w, "go_memstats_mallocs_total %d\ngo_memstats_alloc_bytes_total %d\n", own+asked*objects-late, 100*own+asked*bytes-100*late)
	}))
	defer s.Close()
	target := &Target{admin: strings.TrimPrefix(s.URL, "http://")}
	if err := target.calibrate(); err != nil {
		t.Fatal(err)
	}
	if off := target.asking.minus(Allocated{objects, bytes}); max(off.Objects, -off.Objects) > 1000/askings || max(off.Bytes, -off.Bytes) > 100_000/askings {
		t.Errorf("an asking is taken to allocate %+v", target.asking)
	}
	if silent := (&Target{}); silent.calibrate() != nil || silent.asking != (Allocated{}) {
		t.Errorf("who tells nothing is taken to allocate %+v", silent.asking)
	}
}

func TestAllocatedIsWritten(t *testing.T) {
	for want, a := range map[string]*Allocated{"–": nil, "0, 0 KB": {-0.2, -30}, "431, 71 KB": {430.6, 71_200}} {
		if got := a.String(); got != want {
			t.Errorf("written %q, not %q", got, want)
		}
	}
}
