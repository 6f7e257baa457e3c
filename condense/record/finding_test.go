package record_test

import (
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

func TestFindings(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		want   []record.Finding
	}{
		"prose": {
			"USER_CONTEXT: \"Do not touch v1.\"\nDECISIONS: Redis,\n- since it has to last: two replicas\n- **and** more\nCODE_STATE: a.go\n\nNEXT_STEP: go on",
			[]record.Finding{
				{record.Fact, "USER_CONTEXT", `"Do not touch v1."`},
				{record.Decision, "DECISIONS", "Redis,\n- since it has to last: two replicas\n- **and** more"},
				{record.Task, "NEXT_STEP", "go on"},
			},
		},
		"structured": {
			"# State Summary\n\n## Core Information\n**User Context**: a parcel\n**Pending Tasks**: \n- 3 of 4\n- 4 of 4\n\n## Code Changes\n**Files Modified**: b.go\n" +
				"\n## Additional Context\n**Other Relevant Context**: see https://example.com",
			[]record.Finding{
				{record.Fact, "User Context", "a parcel"}, {record.Task, "Pending Tasks", "- 3 of 4\n- 4 of 4"},
				{record.Fact, "Other Relevant Context", "see https://example.com"},
			},
		},
		"markdown": {
			"before\n## DECISIONS\n\nwe go\n**Facts:** none\n### Tests\nfail",
			[]record.Finding{{record.Fact, "", "before"}, {record.Decision, "DECISIONS", "we go"}, {record.Fact, "Facts", "none"}},
		},
		"translated":   {"ENTSCHEIDUNGEN: Redis", []record.Finding{{record.Fact, "ENTSCHEIDUNGEN", "Redis"}}},
		"short names":  {"DECISIONS: go\nA: why\nDB: Redis\nAPI: v1", []record.Finding{{record.Decision, "DECISIONS", "go\nA: why\nDB: Redis"}, {record.Fact, "API", "v1"}}},
		"nothing told": {"COMPLETED: all\nTESTS: pass", nil},
		"empty":        {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := record.Summary{Record: c.record, Words: "DECISIONS: the user's own", Excerpts: "FACTS: quoted"}
			if got := record.Findings(s.String()); !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}
