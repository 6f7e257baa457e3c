package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// condenser is a custom condenser: it hides the oldest messages until the target is met.
type condenser struct{ *testing.T }

func (c condenser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer a-key" || r.Method != http.MethodPost || r.URL.Path != "/condense" {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	var q struct {
		Version, Count int
		Target         struct{ Count int }
		Units          []struct {
			State    string
			Messages []struct{ ID int }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Version != 1 {
		c.Errorf("asked %+v (%v)", q, err)
	}
	var hide []int
	for _, u := range q.Units {
		if u.State != "may_go" || q.Count-len(hide) < q.Target.Count {
			continue
		}
		for _, m := range u.Messages {
			hide = append(hide, m.ID)
		}
	}
	if err := json.NewEncoder(w).Encode(map[string]any{"hide": hide, "record": fmt.Sprint("A record of one's own: ", len(hide), " messages.")}); err != nil {
		c.Error(err)
	}
}

// customised is an agent behind a custom condenser.
func customised(t *testing.T, condenser string) (*worker, *setting) {
	s := newSetting(t, fakeupstream.Options{})
	return newWorker(t, serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: custom, max_size: 12, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0, %s}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), condenser)))), s
}

// TestCustomCondenser: a custom service condenses.
func TestCustomCondenser(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(condenser{t})
	t.Cleanup(service.Close)
	w, s := customised(t, fmt.Sprintf("url: %q, api_key: a-key", service.URL+"/condense"))
	condensed := 0
	for n := range 20 {
		w.work(n, 20)
		header, _ := w.ask()
		if failed := header.Get("X-Dewpoint-Condense-Failed"); failed != "" {
			t.Fatalf("step %d: %s", n, failed)
		}
		if header.Get("X-Dewpoint-Condensed") != "" {
			condensed++
		}
	}
	if spent := slices.ContainsFunc(w.proxy.metrics(), func(line string) bool {
		return strings.HasPrefix(line, `dewpoint_spent_tokens_total{`) && strings.Contains(line, `kind="summariser"`) && !strings.HasSuffix(line, " 0")
	}); spent {
		t.Error("tokens of a condenser without a model are counted")
	}
	all := s.Upstream.Requests()
	last := string(all[len(all)-1].Body)
	if condensed < 2 || strings.Count(last, "A record of one's own: ") != 1 || strings.Contains(last, "line 1 of a log") ||
		!strings.Contains(last, "line 19 of a log") || !strings.Contains(last, "Repair the build") {
		t.Errorf("%d condensations; upstream got %.2000s", condensed, last)
	}
	for _, r := range all {
		if r.Refused != nil {
			t.Errorf("a request was refused: %v", r.Refused)
		}
	}
}

// TestCustomCondenserFails: with an unusable answer, or none, nothing is hidden, and the request is forwarded whole.
func TestCustomCondenserFails(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var q struct {
			Units []struct {
				State    string
				Messages []struct{ ID int }
			}
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &q) != nil {
			t.Errorf("asked %.200s (%v)", body, err)
		}
		var stays, torn int
		for _, u := range q.Units {
			switch {
			case u.State == "stays" && u.Messages[0].ID > 0:
				stays = u.Messages[0].ID
			case u.State == "may_go" && len(u.Messages) > 1:
				torn = u.Messages[0].ID
			}
		}
		switch r.URL.Path {
		case "/stays":
			fmt.Fprintf(w, `{"hide":[%d]}`, stays)
		case "/torn":
			fmt.Fprintf(w, `{"hide":[%d]}`, torn)
		case "/unknown":
			fmt.Fprint(w, `{"hide":[123456]}`)
		case "/nothing":
			fmt.Fprint(w, `{"hide":[],"record":"none"}`)
		case "/garbage":
			fmt.Fprint(w, `<html>`)
		case "/endless":
			for err == nil {
				_, err = w.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
		case "/hangs":
			<-r.Context().Done()
		case "/stalls":
			fmt.Fprint(w, `{"hide":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/moved":
			http.Redirect(w, r, "/nothing", http.StatusTemporaryRedirect)
		default:
			http.Error(w, "down", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(service.Close)
	for condenser, cause := range map[string]string{
		fmt.Sprintf("url: %q", service.URL+"/stays"):               "malformed",
		fmt.Sprintf("url: %q", service.URL+"/torn"):                "malformed",
		fmt.Sprintf("url: %q", service.URL+"/unknown"):             "malformed",
		fmt.Sprintf("url: %q", service.URL+"/garbage"):             "malformed",
		fmt.Sprintf("url: %q", service.URL+"/moved"):               "malformed",
		fmt.Sprintf("url: %q", service.URL+"/nothing"):             "inflated",
		fmt.Sprintf("url: %q", service.URL+"/endless"):             "malformed",
		fmt.Sprintf("url: %q", service.URL+"/down"):                "server",
		fmt.Sprintf("url: %q, timeout: 1s", service.URL+"/hangs"):  "timeout",
		fmt.Sprintf("url: %q, timeout: 1s", service.URL+"/stalls"): "timeout",
	} {
		t.Run(condenser, func(t *testing.T) {
			t.Parallel()
			w, s := customised(t, condenser)
			failed := ""
			for n := 0; failed == "" && n < 8; n++ {
				w.work(n, 20)
				header, _ := w.ask()
				failed = header.Get("X-Dewpoint-Condense-Failed")
				if header.Get("X-Dewpoint-Condensed") != "" {
					t.Error("it was condensed")
				}
			}
			all := s.Upstream.Requests()
			if last := string(all[len(all)-1].Body); failed != cause || !strings.Contains(last, "line 0 of a log") {
				t.Errorf("it failed by %q, want %q; upstream got %.300s", failed, cause, last)
			}
		})
	}
}
