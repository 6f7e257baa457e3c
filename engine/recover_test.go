package engine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// sent returns the body that goes upstream in a form.
func sent(f *engine.Form) string { return string(bytes.Join(f.Body(), nil)) }

// TestRemedies: for each form and each refusal of upstream's, which remedy is tried, and then which others if upstream refuses that as well. The
// next form follows from the refused one, which stays as it was: asked again, the table gives the same.
func TestRemedies(t *testing.T) {
	tooLong := &overflow.Overflow{}
	refusals := map[string]overflow.Refusal{
		"400":         {Status: 400},
		"400 sealed":  {Status: 400, Reasoning: true},
		"400 roles":   {Status: 400, Alternates: true},
		"401":         {Status: 401},
		"403":         {Status: 403},
		"404":         {Status: 404},
		"413":         {Status: 413},
		"422":         {Status: 422},
		"429":         {Status: 429},
		"500":         {Status: 500},
		"501":         {Status: 501},
		"502":         {Status: 502},
		"503":         {Status: 503},
		"too long":    {Status: 400, Overflow: tooLong},
		"too large":   {Status: 413, Large: true},
		"by its form": {Status: 400, Overflow: &overflow.Overflow{Evidence: overflow.ByForm}}, // not believed of so short a request
		"long answer": {Status: 400, Overflow: &overflow.Overflow{ByOutput: true}},
	}
	const verbatim, onTrial = string(engine.Verbatim), string(engine.OnTrial)
	forms := map[string]struct {
		condenser condense.Condenser
		hidden    engine.Hidden
		sealed    bool
		want      map[string]string // remedies until there is none; not listed: none at all
	}{
		"unchanged": {condenser: condense.Noop{}},
		"condensed": {condenser: rolling(), want: map[string]string{
			"400": verbatim, "400 sealed": verbatim, "400 roles": "alternate " + verbatim, "403": onTrial, "413": onTrial, "422": verbatim, "500": onTrial,
			"501": onTrial, "too long": "shrink", "too large": onTrial, "by its form": verbatim,
		}},
		"condensed, with hidden tools": {condenser: rolling(), hidden: engine.Hidden{Recall: true}, want: map[string]string{
			"400": "withdraw_tools " + verbatim, "400 sealed": "withdraw_tools " + verbatim, "400 roles": "alternate withdraw_tools " + verbatim,
			"403": onTrial, "413": onTrial, "422": "withdraw_tools " + verbatim, "500": onTrial, "501": onTrial, "too long": "shrink", "too large": onTrial, "by its form": "withdraw_tools " + verbatim,
		}},
		"condensed, with sealed reasoning": {condenser: rolling(), sealed: true, want: map[string]string{
			"400": verbatim + " unseal", "400 sealed": verbatim + " unseal", "400 roles": "alternate " + verbatim + " unseal", "403": onTrial, "413": onTrial,
			"422": verbatim + " unseal", "500": onTrial, "501": onTrial, "too long": "shrink", "too large": onTrial, "by its form": verbatim + " unseal",
		}},
	}
	for name, c := range forms {
		for refusal, why := range refusals {
			t.Run(name+"/"+refusal, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, c.condenser)
				r.tenant.Hidden = c.hidden
				asked := says(21)
				if c.sealed { // its reasoning is stripped in the view
					text := strings.Replace(string(asked.bytes), `"assistant","content":"19:`, `"assistant","thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}],"content":"19:`, 1)
					asked.bytes = []byte(text)
				}
				asked.bytes = []byte(strings.Replace(string(asked.bytes), `"messages":`, `"tools":[{"type":"function","function":{"name":"sh"}}],"messages":`, 1))
				turn := r.begin(asked, engine.WishNone)
				turn.Condense(t.Context())
				r.logged(turn)
				var tried []string
				for len(tried) < 9 {
					refused := sent(turn.Form)
					next, report := turn.Next(t.Context(), why)
					twin, second := turn.Next(t.Context(), why)
					if sent(turn.Form) != refused || second.Remedy != report.Remedy || sent(twin) != sent(next) {
						t.Errorf("asked twice for %s and %s, the next forms or the refused one differ", report.Remedy, second.Remedy)
					}
					if turn.Form = next; report.Remedy == "" {
						break
					}
					tried = append(tried, string(report.Remedy))
				}
				if got := strings.Join(tried, " "); got != c.want[refusal] {
					t.Errorf("tried %q, want %q", got, c.want[refusal])
				}
			})
		}
	}
}

// TestRemediesWithoutTheEngine: a request that is not recognised is sent again only without its sealed reasoning, and only if upstream does not
// keep its history.
func TestRemediesWithoutTheEngine(t *testing.T) {
	const (
		sealed = `{"role":"assistant","thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}],"content":"a"}`
		plain  = `{"role":"assistant","content":"a"}`
	)
	asks := func(answer string) []byte {
		return []byte(`{"model":"m","messages":[{"role":"user","content":"q"},` + answer + `,{"role":"user","content":"q"}]}`)
	}
	for name, c := range map[string]struct {
		answer string
		kept   session.Kept
		why    overflow.Refusal
		want   string
	}{
		"sealed":             {sealed, session.Kept{}, overflow.Refusal{Status: 400, Reasoning: true}, "unseal"},
		"sealed, too long":   {sealed, session.Kept{}, overflow.Refusal{Status: 400, Reasoning: true, Overflow: &overflow.Overflow{}}, "unseal"},
		"sealed, failed":     {sealed, session.Kept{}, overflow.Refusal{Status: 500}, ""},
		"sealed, rate limit": {sealed, session.Kept{}, overflow.Refusal{Status: 429}, ""},
		"kept by upstream":   {sealed, session.Kept{Answer: "resp_1"}, overflow.Refusal{Status: 400, Reasoning: true}, ""},
		"not sealed":         {plain, session.Kept{}, overflow.Refusal{Status: 400, Reasoning: true}, ""},
	} {
		r := newRig(t, condense.Noop{})
		split, err := r.settings.Dialects[0].Split("", asks(c.answer))
		must(t, err)
		split.Kept = c.kept
		f := r.engine.Pass(r.settings.Dialects[0], split, split.Body)
		if sent := sent(f); sent != string(split.Body) {
			t.Errorf("%s: forwards %s", name, sent)
		}
		next, report := f.Next(t.Context(), c.why)
		if string(report.Remedy) != c.want || f.MayRetry() != (c.answer == sealed) {
			t.Errorf("%s: tried %q, want %q; may retry %t", name, report.Remedy, c.want, f.MayRetry())
		}
		if sent := sent(next); strings.Contains(sent, "thinking_blocks") != (c.answer == sealed && c.want == "") {
			t.Errorf("%s: forwards %s", name, sent)
		}
		if again, report := next.Next(t.Context(), c.why); report.Remedy != "" || again.Turn().Recognised() {
			t.Errorf("%s: then tries %q", name, report.Remedy)
		}
	}
}
