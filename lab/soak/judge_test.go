package soak

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// rules is which rules a tally says were violated.
func rules(t *tally) string {
	var all []string
	for _, v := range t.violations {
		all = append(all, v.Rule)
	}
	return strings.Join(all, "; ")
}

// sample is a line of the second tenant of two, with a system prompt, two rounds of calls and a turn of the user's.
func sample() (*front, *line) {
	tenants := newTenants(3)
	f := &front{soak: &soak{tally: newTally(), weather: newWeather()}, tenants: map[string]*tenant{}}
	for _, t := range tenants {
		f.tenants[t.outward] = t
	}
	family := newFamily(4, tenants, 1) // of tenant 1, and no twin
	l := family.lines[0]
	l.messages = nil
	l.begin(family.author, 2)
	l.add(text("user", family.author.text(1)))
	return f, l
}

func (l *line) exchange() *exchange {
	x := &exchange{id: "an exchange", family: l.family}
	x.sent, x.inside = l.body()
	return x
}

func keyed(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

// without gives the line's request without one message.
func without(l *line, at int) []byte {
	less := *l.family.branch(l, l.kind, len(l.messages))
	less.messages = append(less.messages[:at:at], less.messages[at+1:]...)
	less.header, less.metadata, less.stream = l.header, l.metadata, l.stream
	body, _ := less.body()
	return body
}

// TestJudgeSees: each thing that must not happen to a request is seen.
func TestJudgeSees(t *testing.T) {
	replaced := func(old, new string) func(*line) []byte {
		return func(l *line) []byte { return bytes.Replace(l.exchange().sent, []byte(old), []byte(new), 1) }
	}
	for name, c := range map[string]struct {
		body func(*line) []byte
		key  string
		want string
	}{
		"nothing":             {body: func(l *line) []byte { return l.exchange().sent }},
		"another's text":      {body: replaced("mk-t1-f4-n2-km", "mk-t0-f4-n2-km"), want: "only the request's own material"},
		"another's key":       {body: func(l *line) []byte { return l.exchange().sent }, key: "sk-soak-upstream-0", want: "a tenant's own key"},
		"a parameter changed": {body: replaced("0.20", "0.2"), want: "nothing but the messages changes"},
		"a byte of a message": {body: replaced("line 0 of", "line 0 Of"), want: "the view holds its invariants"},
		"no system prompt":    {body: func(l *line) []byte { return without(l, 0) }, want: "the view holds its invariants"},
		"half a unit":         {body: func(l *line) []byte { return without(l, 3) }, want: "the view holds its invariants"},
		"no newest turn":      {body: func(l *line) []byte { return without(l, len(l.messages)-1) }, want: "the view holds its invariants"},
	} {
		t.Run(name, func(t *testing.T) {
			f, l := sample()
			if c.key == "" {
				c.key = l.family.tenant.outward
			}
			f.judge(l.exchange(), c.body(l), keyed(c.key))
			if got := rules(f.tally); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestJudgeSeesSummariser: a summariser's call of two conversations, or under a wrong key, is seen.
func TestJudgeSeesSummariser(t *testing.T) {
	const own, twin = "mk-t2-f7-n3-km", "mk-t999-f3-n1-km"
	for name, c := range map[string]struct{ model, text, key, want string }{
		"one conversation":           {modelCheap, own + " mk-t2-f7-n4-km " + twin, cheapKey, ""},
		"two of one tenant":          {modelCheap, own + " mk-t2-f8-n3-km", cheapKey, "a summariser sees one conversation"},
		"two tenants":                {modelCheap, own + " mk-t1-f7-n3-km", cheapKey, "a summariser sees one conversation"},
		"two shared ones":            {modelCheap, twin + " mk-t999-f4-n1-km", cheapKey, "a summariser sees one conversation"},
		"a tenant's key":             {modelCheap, own, "sk-soak-upstream-2", "a summariser has its own key"},
		"the tenant's own model":     {modelMain, own, "sk-soak-upstream-2", ""},
		"another tenant's own model": {modelMain, "mk-t1-f7-n3-km", "sk-soak-upstream-2", "a summariser of the request's own model"},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := sample()
			f.judgeSummariser(encode(map[string]string{"model": c.model, "text": c.text}), keyed(c.key))
			if got := rules(f.tally); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
