package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Waits is what steps take while the model that writes summaries is slow.
type Waits struct {
	Slow     time.Duration // what a summary takes
	Sessions int
	Rows     []WaitRow
}

// WaitRow is the steps at which nothing was due, or at which something was.
type WaitRow struct {
	Due   bool
	Steps int
	P50   time.Duration
	P99   time.Duration
	Worst time.Duration
}

// A summary takes so long, and a history so many tokens until it is condensed.
const (
	slowSummary  = 30 * time.Second
	waitsLimit   = 12_000
	waitsStep    = 400 // words
	slowModel    = "slow-summariser"
	condensedKey = "X-Dewpoint-Condensed"
)

// measureWaits has sessions grow, and take turns over two replicas where there is a Redis.
func (r *rig) measureWaits(ctx context.Context) (_ *Waits, err error) {
	w := &Waits{Slow: slowSummary, Sessions: 8}
	steps := pick(&r.Options, 40, 40, 100)
	up := httptest.NewServer(slowUpstream(slowSummary))
	defer up.Close()
	var targets []*Target
	defer func() {
		_ = up.Listener.Close()     // and so no summary that fails is tried once more
		up.CloseClientConnections() // the summaries under way: a proxy that stops waits for them
		err = closeAll(err, targets...)
	}()
	for range 2 {
		t, err := r.dewpoint(ctx, setting{Name: "waits", Upstream: strings.TrimPrefix(up.URL, "http://"), Waits: true, Redis: r.redis})
		if err != nil {
			return nil, err
		}
		if targets = append(targets, t); r.redis == "" {
			break
		}
	}
	took := map[bool][]time.Duration{}
	histories := make([][]any, w.Sessions)
	for step := range steps {
		for i := range histories {
			h := append(histories[i], message("user", fmt.Sprintf("Session %d, question %d. %s", i, step, strings.Repeat("word ", waitsStep))))
			histories[i] = append(h, message("assistant", "Done."))
			d, due, err := growing(ctx, targets[(i+step)%len(targets)], h)
			if err != nil {
				return nil, err
			}
			took[due] = append(took[due], d)
		}
	}
	for _, due := range []bool{false, true} {
		all := took[due]
		w.Rows = append(w.Rows, WaitRow{Due: due, Steps: len(all), P50: quantile(all, 0.5), P99: quantile(all, 0.99), Worst: quantile(all, 1)})
	}
	return w, nil
}

func message(role, text string) any { return map[string]string{"role": role, "content": text} }

// growing sends a history, and tells whether it was condensed.
func growing(ctx context.Context, t *Target, history []any) (took time.Duration, condensed bool, err error) {
	body, err := json.Marshal(map[string]any{"model": Model, "messages": history})
	if err != nil {
		return 0, false, fmt.Errorf("write a request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.Addr+chatPath, bytes.NewReader(body))
	if err != nil {
		return 0, false, fmt.Errorf("make a request: %w", err)
	}
	begun := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false, fmt.Errorf("send a request: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return 0, false, fmt.Errorf("answer: status %d, %w", resp.StatusCode, errors.Join(err))
	}
	return time.Since(begun), resp.Header.Get(condensedKey) != "", nil
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

func (w *Waits) markdown(out io.Writer) {
	fmt.Fprintf(out, "### Steps at which a summary is due\n\n%d growing sessions in turn, over two replicas and Redis where it is installed, with a model that takes %v for a summary.\n\n", w.Sessions, w.Slow)
	var rows [][]string
	for _, r := range w.Rows {
		name := "nothing is due"
		if r.Due {
			name = "condensed"
		}
		rows = append(rows, []string{name, fmt.Sprint(r.Steps), ms(r.P50), ms(r.P99), ms(r.Worst)})
	}
	table(out, []string{"", "steps", "p50", "p99", "worst"}, rows)
}
