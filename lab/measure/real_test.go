package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// standInModels is a server with three models: "good" writes down what it was shown, "liar" what it was not, and "shy" nothing. None calls functions.
func standInModels(t *testing.T) (asked map[string]int) {
	t.Helper()
	asked = map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct{ Model string }
		if err := json.Unmarshal(body, &request); err != nil || r.URL.Path != "/v1/chat/completions" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		if r.Header.Get("Authorization") != "Bearer sk-mine" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		asked[request.Model]++
		text := map[string]string{
			"good": "USER_CONTEXT: fix the bug in main.go\nCODE_STATE: src/mod0.go sets value_0\nCODE_STATE: src/mod1.go sets value_1\nNEXT_STEP: read on",
			"liar": "USER_CONTEXT: rewrite billing.rs\nCODE_STATE: lib/invented.go sets value_9999\nERRORS_AND_DEAD_ENDS: db/nowhere.sql fails",
		}[request.Model]
		answer, _ := json.Marshal(map[string]any{
			"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop"}},
			"usage":   map[string]any{"prompt_tokens": 1000, "completion_tokens": 50},
		})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-mine")
	return asked
}

// TestRealModelsAreMeasured: what a server answers is checked as in use. What fails is counted by its kind, with each prompt and each model.
func TestRealModelsAreMeasured(t *testing.T) {
	asked := standInModels(t)
	var out bytes.Buffer
	err := run(t.Context(), []string{"real", "-models", "good,liar,shy", "-moments", "2", "-minimum", "2000", written(t, 60), written(t, 60)}, &out)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if cells := strings.Split(strings.Trim(line, "|\n "), " | "); len(cells) == 12 {
			rows[cells[0]+" by "+cells[1]] = cells[2:]
		}
	}
	for row, want := range map[string]string{
		"llm by good": "4 4 ", "llm by liar": "4 0 4 ungrounded", "llm by shy": "4 0 4 empty", "structured_summary by good": "4 0 4 malformed",
	} {
		if len(rows[row]) == 0 || strings.Join(rows[row][:3], " ") != want {
			t.Errorf("%s: %q, want %q in %s", row, rows[row], want, out.String())
		}
	}
	if good := rows["llm by good"]; len(good) > 0 && (!strings.HasPrefix(good[3], "100.0% of ") || !strings.Contains(good[4], "% of ") || good[9] == "0, 0") {
		t.Errorf("%q", good)
	}
	if asked["good"] == 0 || asked["liar"] == 0 || asked["shy"] == 0 {
		t.Errorf("asked %v", asked)
	}
}

// TestNothingIsMeasuredWithoutAServer: without a server, or with one that refuses the key, the command fails and says what it needs.
func TestNothingIsMeasuredWithoutAServer(t *testing.T) {
	asked := standInModels(t)
	for name, set := range map[string]func() (models, want string){
		"no server":   func() (string, string) { t.Setenv("OPENAI_BASE_URL", ""); return "good", "OPENAI_BASE_URL" },
		"no model":    func() (string, string) { return "", "MODELS" },
		"a wrong key": func() (string, string) { t.Setenv("OPENAI_API_KEY", "sk-other"); return "good", "denied" },
	} {
		t.Run(name, func(t *testing.T) {
			standInModels(t)
			models, want := set()
			var out bytes.Buffer
			err := run(t.Context(), []string{"real", "-models", models, "-minimum", "2000", written(t, 60)}, &out)
			if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
				t.Errorf("%v, want %q; written: %s", err, want, out.String())
			}
		})
	}
	if len(asked) > 0 {
		t.Errorf("asked %v", asked)
	}
}
