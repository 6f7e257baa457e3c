package dialect_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
)

// TestReplaceMovesTheList: a replacement before the list changes the list's position, even if it is the second one. A replacement after the
// list does not.
func TestReplaceMovesTheList(t *testing.T) {
	body := `{"tools":null,"messages":[1,2],"model":"m"}`
	list := strings.Index(body, "1,2")
	r := &dialect.Request{Body: []byte(body), ListSpan: dialect.Span{From: list, To: list + 3}}
	replace := func(old, with string) {
		at := bytes.Index(r.Outside(), []byte(old))
		r = r.Replace(dialect.Span{From: at, To: at + len(old)}, []byte(with))
	}
	want := func(joined string) {
		t.Helper()
		if got := string(bytes.Join(r.Join([][]byte{[]byte("3"), []byte("4")}), nil)); got != joined {
			t.Errorf("got %s, want %s", got, joined)
		}
	}
	want(`{"tools":null,"messages":[3,4],"model":"m"}`)
	replace(`"m"`, `"another"`)
	want(`{"tools":null,"messages":[3,4],"model":"another"}`)
	replace("null", "[5]")
	want(`{"tools":[5],"messages":[3,4],"model":"another"}`)
	r = r.Splice(1, []byte(`"stream":true,`))
	want(`{"stream":true,"tools":[5],"messages":[3,4],"model":"another"}`)
	replace(`"another"`, `"m"`)
	want(`{"stream":true,"tools":[5],"messages":[3,4],"model":"m"}`)
}
