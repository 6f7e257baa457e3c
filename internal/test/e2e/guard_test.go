package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// cost is the average cost of a step in a session.
type cost struct {
	objects, bytes float64 // allocated
	calls          map[string]float64
}

// Limits of what a step of a continuing session may allocate: a quarter more objects than were measured, and a tenth more bytes. They include
// everything that the process does in the meantime, such as commits of the store; on a slow machine there are more of these in a step. A known
// message takes some space in tables, but none for its text.
const (
	objectsAStep    = 875
	moreObjects     = 750 // after 2000 messages
	bytesAStep      = 240 << 10
	bytesOfAMessage = 600
)

// TestStepCostDependsOnNewMessages: a step makes the same few store calls however long the history is, and its allocations hardly grow with the
// history. The test does not measure time.
func TestStepCostDependsOnNewMessages(t *testing.T) {
	short, long := costOf(t, 20), costOf(t, 2000)
	for _, c := range []cost{short, long} {
		for op, want := range map[string]float64{"find": 1, "append": 1, "mark": 1, "thread": 0, "trace": 0, "summary": 0, "condense": 0, "lock": 0} {
			if got := c.calls[op]; got < want || got > want+0.1 {
				t.Errorf("%.2f calls of %s a step, want %.0f", got, op, want)
			}
		}
		t.Logf("%.0f objects, %.0f bytes", c.objects, c.bytes)
	}
	if short.objects > objectsAStep {
		t.Errorf("%.0f objects a step, at most %d", short.objects, objectsAStep)
	}
	if short.bytes > bytesAStep {
		t.Errorf("%.0f bytes a step, at most %d", short.bytes, bytesAStep)
	}
	if more := long.objects - short.objects; more > moreObjects {
		t.Errorf("2000 messages take %.0f objects more than 20", more)
	}
	if more := long.bytes - short.bytes; more > 2000*bytesOfAMessage {
		t.Errorf("2000 messages take %.0f bytes more than 20", more)
	}
}

// costOf plays a session with a given number of messages.
func costOf(t *testing.T, messages int) cost {
	t.Helper()
	const warm, steps = 20, 200
	up := fakeupstream.New(fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "fine"}
	}})
	ok(t, up.Start())
	t.Cleanup(up.Close)
	p := serve(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", up.URL()+"/v1", "--store", t.TempDir()+"/a.db")
	history := make([]json.RawMessage, messages)
	for i := range history {
		history[i] = spoken(i)
	}
	client := http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	var before, after cost
	for step := range warm + steps {
		if step == warm {
			before = p.spent()
		}
		resp, err := client.Post(p.url()+"/chat/completions", "application/json", strings.NewReader(string(body(history))))
		ok(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		ok(t, err)
		ok(t, resp.Body.Close())
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("step %d: %s", step, resp.Status)
		}
		history = append(history, spoken(len(history)), spoken(len(history)+1))
	}
	after = p.spent()
	c := cost{(after.objects - before.objects) / steps, (after.bytes - before.bytes) / steps, map[string]float64{}}
	for op, n := range after.calls {
		c.calls[op] = (n - before.calls[op]) / steps
	}
	return c
}

func spoken(i int) json.RawMessage {
	return encode(map[string]string{"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprintf("message %d of %s", i, judge.Model)})
}

// spent returns what a proxy has allocated since it started.
func (p *process) spent() cost {
	p.t.Helper()
	c := cost{calls: map[string]float64{}}
	for _, line := range p.metrics() {
		name, text, _ := strings.Cut(line, " ")
		value, err := strconv.ParseFloat(text, 64)
		op, isCall := strings.CutPrefix(name, `dewpoint_store_seconds_count{op="`)
		switch {
		case err != nil:
		case name == "go_memstats_mallocs_total":
			c.objects = value
		case name == "go_memstats_alloc_bytes_total":
			c.bytes = value
		case isCall:
			c.calls[strings.TrimSuffix(op, `"}`)] = value
		}
	}
	if c.objects == 0 || len(c.calls) == 0 {
		p.t.Fatal("the metrics do not tell")
	}
	return c
}
