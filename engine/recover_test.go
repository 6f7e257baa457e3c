package engine_test

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
)

// TestRemedies: for each form and each refusal of upstream's, which remedy is tried, and then which others if upstream refuses that as well.
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
			"501": onTrial, "too long": "shrink",
		}},
		"condensed, with hidden tools": {condenser: rolling(), hidden: engine.Hidden{Recall: true}, want: map[string]string{
			"400": "withdraw_tools " + verbatim, "400 sealed": "withdraw_tools " + verbatim, "400 roles": "alternate withdraw_tools " + verbatim,
			"403": onTrial, "413": onTrial, "422": "withdraw_tools " + verbatim, "500": onTrial, "501": onTrial, "too long": "shrink",
		}},
		"condensed, with sealed reasoning": {condenser: rolling(), sealed: true, want: map[string]string{
			"400": verbatim + " unseal", "400 sealed": verbatim + " unseal", "400 roles": "alternate " + verbatim + " unseal", "403": onTrial, "413": onTrial,
			"422": verbatim + " unseal", "500": onTrial, "501": onTrial, "too long": "shrink",
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
					next, report := turn.Next(t.Context(), why)
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
