package responses_test

import (
	"bytes"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestOfferWithToolsInTheHistory: hidden tools are offered if the client's tools are an item of its history, whether the request's tools are
// missing, null or empty.
func TestOfferWithToolsInTheHistory(t *testing.T) {
	const item = `{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"exec"}]}`
	const offered = `"tools":[{"type":"function","strict":false,"name":"recall","description":"d","parameters":{}}]`
	d := responses.New(split.Options{})
	for more, want := range map[string]string{
		``:                         `{"model":"m","store":false,"input":[` + item + `],` + offered + `}`,
		`,"tools":null`:            `{"model":"m","store":false,"input":[` + item + `],` + offered + `}`,
		`,"tools":[]`:              `{"model":"m","store":false,"input":[` + item + `],` + offered + `}`,
		`,"tool_choice":"none"`:    "",
		`,"tools":null,"stream":1`: `{"model":"m","store":false,"input":[` + item + `],` + offered + `,"stream":1}`,
	} {
		body := `{"model":"m","store":false,"input":[` + item + `]` + more + `}`
		r := must(d.Split("", []byte(body)))(t)
		if can := d.CanHideTools(r); can != (want != "") {
			t.Errorf("%s: tools can be hidden: %t", more, can)
		}
		if want == "" {
			continue
		}
		with := d.Offer(r, []dialect.Tool{{Name: "recall", Description: "d", Parameters: "{}"}})
		if got := string(bytes.Join(d.Join(with, [][]byte{[]byte(item)}), nil)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", more, got, want)
		}
	}
	if r := must(d.Split("", []byte(`{"model":"m","store":false,"input":"hi"}`)))(t); d.CanHideTools(r) {
		t.Error("tools can be hidden from a client that has none")
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
