package condense_test

import (
	"context"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestBlankRecord: a service that answers white space for a record writes none, so that the record before it stays.
func TestBlankRecord(t *testing.T) {
	v := session.Project(chatter(12), nil)
	for _, record := range []string{"", ` \n `} {
		c := condense.NewCustom(condense.LLMSettings{
			Settings: condense.Settings{MaxSize: 10, KeepFirst: 1},
			Summariser: summariserFunc(func(context.Context, condense.Request) (condense.Reply, error) {
				return condense.Reply{Text: `{"hide":[3,4,5,6,7,8],"record":"` + record + `"}`}, nil
			}),
		})
		r, err := c.Condense(input(&v)).Job.Run(t.Context())
		if err != nil || r.Condensation.Summary != "" {
			t.Errorf("%q: %v, %q", record, err, r.Condensation.Summary)
		}
	}
}
