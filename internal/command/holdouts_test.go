package command

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHoldoutsAreShownByArm: savings shows both arms of a holdout, and what is known of the difference.
func TestHoldoutsAreShownByArm(t *testing.T) {
	var h, ended holdoutReport
	for text, into := range map[string]*holdoutReport{
		`{"tenant":"team-a","share":0.1,"ended":false,"condensed":{"sessions":1900,"usd_per_session":1.25,"steps_per_session":20,"errors_per_session":0.5},
			"held_out":{"sessions":200,"usd_per_session":2.5,"steps_per_session":21},"saved_usd_per_session":{"low":0.5,"mean":1,"high":1.5},"verdict":"condensing saves"}`: &h,
		`{"tenant":"b","ended":true,"saved_usd_per_session":null,"verdict":"not known yet"}`: &ended,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		all  []holdoutReport
		want []string
	}{
		"none":    {},
		"one":     {[]holdoutReport{h}, []string{"condensed 1,900 $1.25 20.0 0.50", "held out 200 $2.50 21.0 0.00", "team-a: 10% of the sessions are held out; condensing saves $0.50 to $1.50 a session (95%). Verdict: condensing saves."}},
		"unknown": {[]holdoutReport{ended}, []string{"b: ended by an override. Verdict: not known yet."}},
	} {
		var out strings.Builder
		if err := printHoldouts(&out, c.all); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		if len(c.want) == 0 && text != "" {
			t.Errorf("%s: %s", name, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q lacks %q", name, text, want)
			}
		}
	}
}
