package engine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

// TestReferences: a message of the model that the client refers to by its id is counted and logged as it is. A reference that is given twice
// is not resolved, so that a small request cannot become a large one; nor is one to an answer for another client.
func TestReferences(t *testing.T) {
	const question, reference = `{"role":"user","content":"How deep is the sea?"}`, `{"type":"item_reference","id":"msg_1"}`
	said := `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"` + strings.Repeat("It is deep. ", 300) + `"}]}`
	for name, c := range map[string]struct {
		input, client string
		resolved      bool
	}{
		"given once":         {question + `,` + reference, "sk-a", true},
		"given twice":        {question + `,` + reference + `,` + question + `,` + reference, "sk-a", false},
		"twice in a message": {question + `,` + reference + `,` + reference, "sk-a", false},
		"of another client":  {question + `,` + reference, "sk-b", false},
	} {
		r := newRig(t, condense.Noop{})
		r.tenant.Anonymous = true
		r.settings = r.engine.Swap(engine.Settings{
			Tenants: []*engine.Tenant{&r.tenant}, Dialects: []dialect.Dialect{responses.New(split.Options{})}, Models: r.settings.Models,
		})
		ask := func(client, input string) *engine.Turn {
			r.client = client
			turn := r.begin(&body{bytes: []byte(`{"model":"m","input":[` + input + `]}`)}, engine.WishNone)
			r.logged(turn)
			return turn
		}
		must(t, ask("sk-a", question).Answered(dialect.Answer{ID: "resp_1", Said: []byte(said)}, nil)(t.Context()))
		turn := ask(c.client, c.input+`,`+question)
		if counted := turn.Before().Tokens > len(said)/4-100; counted != c.resolved {
			t.Errorf("%s: it was counted as %d tokens", name, turn.Before().Tokens)
		}
		events, err := r.store.Events(t.Context(), turn.Place().Thread.ID, 1, 10)
		must(t, err)
		found := false
		for _, e := range events {
			found = found || bytes.Equal(e.Payload, []byte(said))
		}
		if found != c.resolved {
			t.Errorf("%s: the log holds %v", name, events)
		}
		if sent := forwarded(turn); !bytes.Contains(sent, []byte(c.input)) {
			t.Errorf("%s: forwarded %s", name, sent)
		}
	}
}
