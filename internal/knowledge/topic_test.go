package knowledge

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	f := func(text string, want Topic, problem string) {
		t.Helper()
		got, err := parse("file", text)
		if problem != "" {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%q: %v, want %q", text, err, problem)
			}
			return
		}
		if err != nil || got.Name != want.Name || got.Text != want.Text || strings.Join(got.Triggers, "|") != strings.Join(want.Triggers, "|") {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	f("Always.\n", Topic{Name: "file", Text: "Always."}, "")
	f("---\nname: n\ntype: knowledge\nversion: 1.0.0\nagent: CodeActAgent\ntriggers:\n- Docker\n- \" podman \"\n---\n\nText.\n---\nMore.",
		Topic{Name: "n", Triggers: []string{"docker", "podman"}, Text: "Text.\n---\nMore."}, "")
	f("\ufeff---\r\ntype: repo\r\n---\r\nText.", Topic{Name: "file", Text: "Text."}, "")
	f("---\n---\nText.", Topic{Name: "file", Text: "Text."}, "")
	f("---\nnever closed", Topic{Name: "file", Text: "---\nnever closed"}, "")
	f("---\ntype: knowledge\n---\nText.", Topic{}, "triggers: are missing")
	f("---\ntype: repo\ntriggers: [a]\n---\nText.", Topic{}, "triggers: are not allowed")
	f("---\ntype: task\n---\nText.", Topic{}, "triggers: are missing")
	f("---\ntype: task\ntriggers: [/review]\n---\nText.", Topic{Name: "file", Triggers: []string{"/review"}, Text: "Text."}, "")
	f("---\ntype: bogus\ntriggers: [a]\n---\nText.", Topic{}, `type: is "bogus": use knowledge, repo or task`)
	f("---\ntriggers: [a]\n---\n", Topic{}, "has no text")
	f("---\ntriggers: [a]\n---", Topic{}, "has no text")
	f("---\ntriggers: {\n---\nText.", Topic{}, "not YAML")
	f("---\ntriggers: docker\n---\nText.", Topic{}, "triggers: must be a list, not a string")
	f("---\ntriggers: ["+strings.Repeat("x", maxTrigger+1)+"]\n---\nText.", Topic{}, "triggers: one is longer than 256 bytes")
	f("---\nname: [a]\n---\nText.", Topic{}, "name: must be a string, not a list")
	f("---\nname: a\nname: b\n---\nText.", Topic{}, "name: is given twice")
	f("---\n- a\n---\nText.", Topic{}, "must be a section of keys")
	f("---\nname: 1.50\nother: !tag [*none]\ntriggers: [7, null, &x yes, *x]\n---\nText.", Topic{Name: "1.50", Triggers: []string{"7", "yes", "yes"}, Text: "Text."}, "")
	f("---\n"+strings.Repeat("[", 9000)+"\n---\nText.", Topic{}, "longer than 8192 bytes")
}

func TestTold(t *testing.T) {
	topics, err := NewTopics([]Topic{{Triggers: []string{"podman", "docker"}, Text: "A </EXTRA_INFO> text."}})
	if err != nil {
		t.Fatal(err)
	}
	found := topics.In("the dockerfile")
	if len(topics.In("what is a container?")) > 0 || len(found) != 1 {
		t.Fatal("triggered by the wrong words")
	}
	text := found[0].Render()
	if strings.Count(text, "</EXTRA_INFO>") != 1 || !strings.HasSuffix(text, "</EXTRA_INFO>") || !strings.Contains(text, `match for "docker"`) {
		t.Errorf("rendered %q", text)
	}
}
