package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Wait is what steps take while the model that writes summaries is slow: those at which nothing was due, or at which something was.
type Wait struct {
	Name  string
	Steps int
	P50   time.Duration
	P99   time.Duration
	Worst time.Duration
}

// A summary takes so long, and a history so many tokens until it is condensed.
const (
	slowSummary   = 30 * time.Second
	waitsLimit    = 12_000
	waitsStep     = 400 // words
	waitsSessions = 8
	slowModel     = "slow-summariser"
)

// measureWaits has sessions grow, and take turns over two replicas where there is a Redis.
func (r *rig) measureWaits(ctx context.Context) (waits []Wait, err error) {
	steps := pick(&r.Options, 40, 40, 100)
	up := httptest.NewServer(slowUpstream(slowSummary))
	defer up.Close()
	var targets []*Target
	var clients []*client
	defer func() {
		for _, c := range clients {
			c.close()
		}
		_ = up.Listener.Close()     // and so no summary that fails is tried once more
		up.CloseClientConnections() // the summaries under way: a proxy that stops waits for them
		err = closeAll(err, targets...)
	}()
	for range 2 {
		t, err := r.dewpoint(ctx, setting{Name: "waits", Upstream: strings.TrimPrefix(up.URL, "http://"), Waits: true, Redis: r.redis})
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
		c, err := dial(ctx, t.Addr, bufferSize)
		if err != nil {
			return nil, err
		}
		if clients = append(clients, c); r.redis == "" {
			break
		}
	}
	took := map[bool][]time.Duration{}
	histories := make([][]any, waitsSessions)
	for step := range steps {
		for i := range histories {
			h := append(histories[i], message("user", fmt.Sprintf("Session %d, question %d. %s", i, step, strings.Repeat("word ", waitsStep))))
			histories[i] = append(h, message("assistant", "Done."))
			at := (i + step) % len(targets)
			a, err := clients[at].grow(targets[at], h)
			if err != nil {
				return nil, err
			}
			due := a.has("X-Dewpoint-Condensed")
			took[due] = append(took[due], a.took)
		}
	}
	for due, name := range []string{"nothing is due", "condensed"} {
		all := took[due == 1]
		waits = append(waits, Wait{Name: name, Steps: len(all), P50: quantile(all, 0.5), P99: quantile(all, 0.99), Worst: quantile(all, 1)})
	}
	return waits, nil
}

func message(role, text string) any { return map[string]string{"role": role, "content": text} }

// grow sends a history.
func (c *client) grow(t *Target, history []any) (*answer, error) {
	body, err := json.Marshal(map[string]any{"model": Model, "messages": history})
	if err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	a, err := c.do(&call{Target: t, Body: body})
	if err == nil && a.StatusCode() != http.StatusOK {
		return nil, fmt.Errorf("answer: status %d: %.300s", a.StatusCode(), a.Body())
	}
	return a, err
}

// slowUpstream answers at once, but summaries after so long.
func slowUpstream(slow time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var asked struct{ Model string }
		if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if asked.Model == slowModel {
			pause(req.Context(), slow)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}],`+
			`"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`, asked.Model)
	})
}

func writeWaits(out io.Writer, waits []Wait) {
	fmt.Fprintf(out, "### Steps at which a summary is due\n\n%d growing sessions in turn, over two replicas and, if installed, Redis, "+
		"with a model that takes %v for a summary.\n\n", waitsSessions, slowSummary)
	var rows [][]string
	for _, r := range waits {
		rows = append(rows, []string{r.Name, fmt.Sprint(r.Steps), ms(r.P50), ms(r.P99), ms(r.Worst)})
	}
	table(out, []string{"", "steps", "p50", "p99", "worst"}, rows)
}
