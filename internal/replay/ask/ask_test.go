package ask_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/replay/ask"
)

func TestSameActionByTheRule(t *testing.T) {
	act := func(tool, arguments string) (a ask.Action) {
		a.Tool = tool
		if err := json.Unmarshal([]byte(arguments), &a.Arguments); err != nil {
			t.Fatal(err)
		}
		return a
	}
	for name, c := range map[string]struct {
		a, b ask.Action
		want bool
	}{
		"two texts":             {ask.Action{}, ask.Action{}, true},
		"a text and a call":     {ask.Action{}, act("read", `{}`), false},
		"another tool":          {act("read", `{"path":"a.go"}`), act("edit", `{"path":"a.go"}`), false},
		"the same file":         {act("read", `{"path":"./src/a.go"}`), act("read", `{"path":"src//a.go"}`), true},
		"absolute and relative": {act("read", `{"file_path":"/w/src/a.go"}`), act("read", `{"file_path":"src/a.go"}`), true},
		"a name's end":          {act("read", `{"path":"/w/ba.go"}`), act("read", `{"path":"a.go"}`), false},
		"another file":          {act("read", `{"path":"src/a.go"}`), act("read", `{"path":"src/b.go"}`), false},
		"no file":               {act("read", `{"path":"src/a.go"}`), act("read", `{}`), false},
		"remarks":               {act("run", `{"command":"make","description":"Builds"}`), act("run", `{"command":"make","description":"Build it"}`), true},
		"flags in any order":    {act("run", `{"command":"ls -l -a src"}`), act("run", `{"command":"cd /w && ls -a -l src"}`), true},
		"another command":       {act("run", `{"command":"go test ./a"}`), act("run", `{"command":"go test ./b"}`), false},
		"a default":             {act("run", `{"command":"make","background":false}`), act("run", `{"command":"make"}`), true},
		"another number":        {act("scale", `{"replicas":2}`), act("scale", `{"replicas":3}`), false},
		"nearly the same edit":  {act("edit", `{"path":"a","new_string":"one two three four five six seven eight nine ten"}`), act("edit", `{"path":"a","new_string":"one two three four five six seven eight nine ten!"}`), true},
		"another edit":          {act("edit", `{"path":"a","new_string":"return nil"}`), act("edit", `{"path":"a","new_string":"return err"}`), false},
	} {
		if got := c.a.Same(c.b); got != c.want || c.b.Same(c.a) != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// standIn is a server with a model that reads the newest number which its prompt names, and forgets it if the prompt has a record.
func standIn(t *testing.T, asked *[]string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, string(body))
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		file := "rules.md"
		if strings.Contains(string(body), "dewpoint_record") {
			file = "other.md"
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"tool_calls":[{"function":{"name":"read","arguments":"{\"path\":\"%s\"}"}}]}}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, file)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// long is a run that is condensed.
func long(name string) replay.Run {
	run := replay.Run{Name: name, Messages: []json.RawMessage{json.RawMessage(`{"role":"user","content":"tidy up"}`)}}
	for i := range 40 {
		run.Messages = append(run.Messages,
			json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read","arguments":"{}"}}]}`, i)),
			json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, strings.Repeat("a line of the file\n", 200))))
	}
	run.Final = json.RawMessage(`{"role":"assistant","content":"Done."}`)
	return run
}

// TestNextActionIsComparedWithTheWholeHistory: a model that acts otherwise once it sees a record is found out, and one setting under which nothing is
// condensed asks nothing.
func TestNextActionIsComparedWithTheWholeHistory(t *testing.T) {
	var asked []string
	a := &ask.Asker{Model: ask.Model{Name: "small", BaseURL: standIn(t, &asked), Key: "secret"}, Every: 4, Most: 3}
	whole, shown := config.Default(), config.Default()
	whole.Condenser = catalogue.Default(catalogue.TypeNoop)
	shown.Condenser = catalogue.Default(catalogue.TypeExcerpts)
	shown.Condenser.Trigger, shown.Condenser.MaxSize, shown.Condenser.MinTokens = catalogue.TriggerLimits, 20, 0
	if _, err := replay.Compare(t.Context(), []*config.Config{whole, shown}, long("a"), replay.Options{Look: a.Look}); err != nil {
		t.Fatal(err)
	}
	results := a.Results()
	if len(results) != 2 || results[0].Steps != 0 {
		t.Fatalf("results: %+v", results)
	}
	if r := results[1]; r.Runs != 1 || r.Steps != 3 || r.Whole != 1 || r.View != 0 || r.Lost.Mean != 1 {
		t.Errorf("condensed: %+v", r)
	}
	if len(asked) != 3*4 {
		t.Errorf("%d questions, want two with the whole history and two with the view for each of three steps", len(asked))
	}
	if !strings.Contains(asked[0], `"name":"read"`) || !strings.Contains(asked[0], `"tool_call_id":"c0"`) {
		t.Errorf("asked %.400s", asked[0])
	}
	var table strings.Builder
	if err := a.Write([]string{"whole", "shown"}, &table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"next action by small", "100%", "needs 10 runs", "took 120 tokens of input and 24 of output"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

// TestServerThatRefusesEndsTheReplay: its words are in the error.
func TestServerThatRefusesEndsTheReplay(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such model", http.StatusNotFound)
	}))
	defer server.Close()
	a := &ask.Asker{Model: ask.Model{Name: "gone", BaseURL: server.URL}, Every: 1}
	cfg := config.Default()
	cfg.Condenser = catalogue.Default(catalogue.TypeExcerpts)
	cfg.Condenser.Trigger, cfg.Condenser.MaxSize, cfg.Condenser.MinTokens = catalogue.TriggerLimits, 20, 0
	_, err := replay.Compare(t.Context(), []*config.Config{cfg}, long("a"), replay.Options{Look: a.Look})
	if err == nil || !strings.Contains(err.Error(), "no such model") || !strings.Contains(err.Error(), "ask gone about step") {
		t.Errorf("the error is %v", err)
	}
}
