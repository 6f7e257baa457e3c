package chat

import "testing"

func TestRewrite(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		got, err := New(Options{}).Rewrite([]byte(raw), "a \"b\"\n")
		if err != nil || string(got) != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", raw, got, err, want)
		}
	}
	f(`{"role":"tool","tool_call_id":"c","content":"long"}`, `{"role":"tool","tool_call_id":"c","content":"a \"b\"\n"}`)
	f(`{ "content" : [{"type":"text","text":"x"}] , "role":"tool", "x": {"content":"long"} }`,
		`{ "content" : "a \"b\"\n" , "role":"tool", "x": {"content":"long"} }`)
	f(`{"role":"tool","x":"long","content":"long","name":"long"}`, `{"role":"tool","x":"long","content":"a \"b\"\n","name":"long"}`)
	f(`{"role":"tool","content":null}`, `{"role":"tool","content":"a \"b\"\n"}`)
	for _, bad := range []string{`{"role":"tool"}`, `{`, ``, `[]`} {
		if got, err := New(Options{}).Rewrite([]byte(bad), "x"); err == nil {
			t.Errorf("%s: got %s", bad, got)
		}
	}
}

func TestMerge(t *testing.T) {
	f := func(first, second, want string) {
		t.Helper()
		got, err := New(Options{}).Merge([]byte(first), []byte(second))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	f(`{"role":"user","content":"a\u00e9","name":"x"}`, `{"role":"user","content":"\ud800 b"}`, `{"role":"user","content":"a\u00e9\n\n\ud800 b","name":"x"}`)
	f(`{"role":"user","content": [{"type":"text","text":"a"}, {"type":"image_url"}] }`, `{"role":"user","content":"b"}`,
		`{"role":"user","content": [{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}] }`)
	f(`{"role":"user","content":"a"}`, `{"content":[{"type":"image_url"}],"role":"user"}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}`)
	f(`{"role":"user","content":null}`, `{"role":"user","content":"b"}`, `{"role":"user","content":[{"type":"text","text":"b"}]}`)
	for _, bad := range [...]string{`{"role":"user"}`, `{"role":"user","content":"x"`, `[]`} {
		if got, err := New(Options{}).Merge([]byte(bad), []byte(`{"content":"x"}`)); err == nil {
			t.Errorf("%s: merged to %s", bad, got)
		}
		if got, err := New(Options{}).Merge([]byte(`{"content":"x"}`), []byte(bad)); err == nil {
			t.Errorf("%s: merged to %s", bad, got)
		}
	}
}
