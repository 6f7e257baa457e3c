package bench

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain makes the test binary the bare proxy and the relay, too.
func TestMain(m *testing.M) {
	serve := map[string]func(upstream string, out io.Writer) error{"bare-proxy": ServeBare, "relay": ServeRelay}
	if len(os.Args) == 3 && serve[os.Args[1]] != nil {
		if err := serve[os.Args[1]](os.Args[2], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestRun runs everything, as short as it can be: all targets answer, and every table has what it is to have.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("SLOW: make full runs it")
	}
	binary := filepath.Join(t.TempDir(), "dewpoint")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/proxy").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(t.Context(), Options{
		Dewpoint: binary, Bare: []string{self, "bare-proxy"}, Relay: []string{self, "relay"}, Tiny: true, Log: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{nameBare, nameDirect, nameRelay, nameEmbedded}
	for name, program := range map[string]string{nameNginx: "nginx", nameRedis: "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Run(program, func(t *testing.T) { t.Skip("NOT TESTED: it is not installed") })
			continue
		}
		want = append(want, name)
	}
	for _, c := range result.Cells {
		checkCell(t, c, want)
	}
	if len(result.Cells) != 6 || result.Streaming == nil || result.Memory == nil || result.Waits == nil {
		t.Fatalf("a part is missing: %+v", result)
	}
	for _, r := range result.Waits {
		if r.Steps == 0 || r.Worst > slowSummary/2 {
			t.Errorf("steps wait for a summary: %+v", r)
		}
	}
	if o := result.Memory.Overload; o.Refused == 0 || o.Served == 0 || o.Other != 0 {
		t.Errorf("overload: %+v", o)
	}
	var doc bytes.Buffer
	result.Markdown(&doc)
	if strings.Contains(doc.String(), t.TempDir()) || strings.Contains(doc.String(), "127.0.0.1") || strings.Contains(doc.String(), "NaN") {
		t.Errorf("the tables tell where they were made, or nothing:\n%s", doc.String())
	}
}

func checkCell(t *testing.T, c CellResult, want []string) {
	t.Helper()
	if len(c.Targets) != len(want) {
		t.Errorf("%s: %d targets, not %d", c.Name(), len(c.Targets), len(want))
	}
	for _, name := range want {
		got, ok := c.find(name)
		if !ok || got.Requests == 0 || got.P50 == 0 || got.Ratio.Median == 0 {
			t.Errorf("%s: %s: %+v", c.Name(), name, got)
		}
	}
}

// between is a proxy of the test's own, which may do wrong by a request on its way to the mock.
func between(t *testing.T, m *Mock, wrong func(forward func([]byte) []byte, id string, body []byte) []byte) *Target {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		forward := func(body []byte) []byte {
			up, err := http.NewRequest(http.MethodPost, "http://"+m.Addr()+chatPath, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return nil
			}
			up.Header = r.Header
			resp, err := http.DefaultTransport.RoundTrip(up)
			if err != nil {
				t.Error(err)
				return nil
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			return answer
		}
		w.Write(wrong(forward, r.Header.Get(headerID), body))
	}))
	t.Cleanup(s.Close)
	return &Target{Name: "between", Addr: strings.TrimPrefix(s.URL, "http://")}
}

type forwarding = func(forward func([]byte) []byte, id string, body []byte) []byte

// TestVerification: a run fails for a request that was lost, altered, sent twice or answered wrongly.
func TestVerification(t *testing.T) {
	honest := func(forward func([]byte) []byte, _ string, body []byte) []byte { return forward(body) }
	tests := map[string]struct {
		wrong forwarding
		want  string // in the error, empty: none
	}{
		"honest": {wrong: honest},
		"lost": {want: "lost", wrong: func(_ func([]byte) []byte, id string, _ []byte) []byte {
			return []byte(`{"id":"chatcmpl-` + id + `"}`)
		}},
		"a byte altered": {want: "altered", wrong: func(forward func([]byte) []byte, _ string, body []byte) []byte {
			return forward(bytes.Replace(body, []byte("nightly"), []byte("Nightly"), 1))
		}},
		"a byte less": {want: "altered", wrong: func(forward func([]byte) []byte, _ string, body []byte) []byte {
			return forward(bytes.Replace(body, []byte("nightly"), []byte("night"), 1))
		}},
		"sent twice": {want: "2 times", wrong: func(forward func([]byte) []byte, _ string, body []byte) []byte {
			forward(body)
			return forward(body)
		}},
		"another's answer": {want: "another request's answer", wrong: func(forward func([]byte) []byte, _ string, body []byte) []byte {
			forward(body)
			return []byte(`{"id":"chatcmpl-0"}`)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := startMock(t)
			if test.want == "lost" {
				m.Expected.wait = time.Millisecond
			}
			r := &rig{mock: m}
			target := between(t, m, test.wrong)
			c, err := dial(t.Context(), target.Addr, bufferSize)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			h := NewHistory(Plan{Size: 10_000})
			_, err = r.ask(c, &call{Target: target, Body: h.Step(0, false)})
			switch {
			case test.want == "" && err != nil:
				t.Errorf("an honest proxy fails: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func startMock(t *testing.T) *Mock {
	m, err := StartMock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// TestStrayArrivals: what arrives late or was never sent fails the run, too.
func TestStrayArrivals(t *testing.T) {
	x := newExpectations()
	if x.arrived(7); x.check() == nil {
		t.Error("a request that was never made passed")
	}
	if x.await(7) == nil {
		t.Error("took what was not expected")
	}
	x.wait = time.Millisecond
	id, _ := x.add(nil)
	if err := x.await(id); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("got %v", err)
	}
}
