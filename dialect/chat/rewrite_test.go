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
