package protocols_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestEveryRowIsWhole: a row's dialect has its name, no two rows serve the same path, and its dialect reads the questions that it writes, at the
// place that it names for them, where the proxy serves it.
func TestEveryRowIsWhole(t *testing.T) {
	served := map[string]string{}
	for _, p := range protocols.All() {
		d := p.New(split.Options{})
		if d.Name() != p.Name || protocols.Named(p.Name).Name != p.Name {
			t.Errorf("%s is called %s", p.Name, d.Name())
		}
		for _, path := range slices.Concat(p.Answers, p.Counts, p.Compacts) {
			if other, is := served[path]; is {
				t.Errorf("%s serves %s, and so does %s", p.Name, path, other)
			}
			served[path] = p.Name
		}
		schema := &dialect.Schema{Name: "note", Description: "d", JSON: []byte(`{"type":"object"}`)}
		for _, q := range []dialect.Question{
			{}, {Streamed: true}, {MaxOutput: 321}, {Function: schema}, {Format: schema},
		} {
			q.Model, q.System, q.User = "a-model", "Be brief.", "What is said?"
			body, err := json.Marshal(d.Question(q))
			if err != nil {
				t.Fatal(err)
			}
			path, query := d.Place("", q)
			if pattern := strings.Replace(path, "a-model", "{model}", 1); !slices.Contains(p.Answers, path) && !slices.Contains(p.Answers, pattern) {
				t.Errorf("%s asks at %s", p.Name, path)
			}
			r, err := d.Split(path+"?"+query, body)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Name, body, err)
				continue
			}
			last, err := d.Read(r.Messages[len(r.Messages)-1].Raw)
			if err != nil || last.Text != q.User || r.Model != q.Model || !strings.Contains(string(body), q.System) || r.MaxOutput != q.MaxOutput {
				t.Errorf("%s: %s: read %+v, %+v (%v)", p.Name, body, r, last, err)
			}
			if got := string(body); q.Function != nil && !strings.Contains(got, fmt.Sprintf("%q", q.Function.Name)) {
				t.Errorf("%s: %s names no function", p.Name, got)
			}
		}
	}
}

// TestAnUnknownNameIsTheUsualProtocol, since configurations that name none mean it.
func TestAnUnknownNameIsTheUsualProtocol(t *testing.T) {
	for _, name := range []string{"", "telex"} {
		if got := protocols.Named(name).Name; got != "chat" {
			t.Errorf("%q: %s", name, got)
		}
	}
}
