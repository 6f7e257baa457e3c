package retention

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

const sample = `<dewpoint_events>
<dewpoint_event id="3" kind="observation">
nothing to see here
src/alpha.go and parse_args are what matters in this rather long line
src/alpha.go parse_args
beta_value is 4821
</dewpoint_event>
</dewpoint_events>

Write the record now, in at most 4 words. Output only the record.`

func TestStandInWritesLines(t *testing.T) {
	s := NewStandIn(wordCounter{}.Count)
	tests := map[string]struct {
		user string
		max  int
		want string
	}{
		"the densest lines, no reference twice": {strings.Replace(sample, "4 words", "400 words", 1), 100, "CURRENT_STATE: src/alpha.go parse_args\nbeta_value is 4821"},
		"the words asked for":                   {sample, 100, "CURRENT_STATE: src/alpha.go parse_args"}, // 6 tokens: 3 and then 4 do not fit
		"what the model may write":              {strings.Replace(sample, "4 words", "400 words", 1), 3, "CURRENT_STATE: src/alpha.go parse_args"},
		"no room":                               {sample, 1, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reply, err := s.Summarise(context.Background(), condense.Request{User: test.user, MaxOutput: test.max})
			if err != nil || reply.Text != test.want {
				t.Errorf("got %q, %v", reply.Text, err)
			}
		})
	}
}

func TestStandInCallsTheFunction(t *testing.T) {
	s := NewStandIn(wordCounter{}.Count)
	reply, err := s.Summarise(context.Background(), condense.Request{
		User: sample, MaxOutput: 100, Function: &condense.Schema{Name: "create_state_summary"},
	})
	var arguments map[string]string
	if err != nil || json.Unmarshal([]byte(reply.Arguments), &arguments) != nil || arguments["current_state"] != "src/alpha.go parse_args" {
		t.Errorf("got %+v, %v", reply, err)
	}
}

func TestStandInRanks(t *testing.T) {
	s := NewStandIn(wordCounter{}.Count)
	reply, err := s.Summarise(context.Background(), condense.Request{
		User: "<dewpoint_event id=\"7\" kind=\"user\">\nnothing at all\n</dewpoint_event>\n" +
			"<dewpoint_event id=\"8\" kind=\"user\">\nsrc/alpha.go in a rather long text\n</dewpoint_event>\n" +
			"<dewpoint_event id=\"9\" kind=\"user\">\nbeta_value 4821\n</dewpoint_event>\n",
		Format: &condense.Schema{Name: "event_ranking"},
	})
	var ranking struct{ IDs []int }
	if err != nil || json.Unmarshal([]byte(reply.Text), &ranking) != nil || !reflect.DeepEqual(ranking.IDs, []int{9, 8}) {
		t.Errorf("got %+v, %v", reply, err)
	}
}
