package soak

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// judge checks a forwarded request against the one that its client sent.
func (f *front) judge(x *exchange, body []byte, header http.Header) {
	f.tally.count(groupChecked, "forwarded requests")
	violate := func(rule, format string, args ...any) { f.tally.violate(rule, x.id, format, args...) }
	if got, want := bearer(header), x.family.tenant.outward; got != want {
		violate("a tenant's own key goes upstream", "%q, want %q", got, want)
	}
	own := marksIn(slices.Concat(append(slices.Clip(x.edited), x.sent)...))
	for m := range marksIn(body) {
		if !own[m] {
			violate("only the request's own material is forwarded", "%s is not in what was sent: %s", m, around(body, m))
		}
	}
	if !bytes.HasPrefix(body, x.sent[:x.inside.from]) || !bytes.HasSuffix(body, x.sent[x.inside.to:]) {
		violate("nothing but the messages changes", "%s", body)
	}
	if x.family.tenant.condenser.alternates {
		return // messages are put together; upstream judges how
	}
	v, err := judge.LayOver(x.sent, body)
	if err == nil {
		err = v.Check()
	}
	if err != nil {
		violate("the view holds its invariants", "%v", err)
		return
	}
	if !bytes.Equal(body, x.sent) {
		f.tally.count(groupChecked, "of them condensed")
	}
	if v.Summary != "" {
		f.tally.count(groupChecked, "summaries forwarded")
		for _, mark := range poisons() {
			if strings.Contains(strings.TrimSuffix(v.Summary, recordEnd), mark) {
				violate("a summary cannot speak for others", "%q is in %s", mark, v.Summary)
			}
		}
		f.tally.add(groupChecked, "marks in summaries", len(marksIn([]byte(v.Summary))))
	}
}

// judgeSummariser checks that a call of a summariser shows one conversation, under the right key.
func (f *front) judgeSummariser(body []byte, header http.Header) {
	f.tally.count(groupChecked, "summariser calls")
	var groups [2]string // that the texts belong to: of the tenant's own, and shared with another
	var owner mark
	for m := range marksIn(body) {
		is := parseMark(m)
		kind := 0
		if is.Tenant == shared {
			kind = 1
		} else {
			owner = is
		}
		group, _, _ := strings.Cut(m, "-n")
		if groups[kind] != "" && groups[kind] != group {
			f.tally.violate("a summariser sees one conversation", group, "%s: %s", groups[kind], around(body, m))
		}
		groups[kind] = group
	}
	var request struct{ Model string }
	_ = json.Unmarshal(body, &request) // the fake upstream judges the form
	f.judgeOwner(owner, request.Model, bearer(header))
}

// judgeOwner checks a summariser's key: its own, or that of the tenant whose model it is.
func (f *front) judgeOwner(owner mark, model, key string) {
	if model == modelCheap {
		if key != cheapKey {
			f.tally.violate("a summariser has its own key", model, "%q", key)
		}
		return
	}
	t := f.tenants[key]
	if t == nil || !t.condenser.own || owner != (mark{}) && owner.Tenant != t.number {
		f.tally.violate("a summariser of the request's own model has its tenant's key", owner.String(), "%q", key)
	}
}

func bearer(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }

// around is the text that stands around a mark.
func around(text []byte, m string) []byte {
	const reach = 200
	at := bytes.Index(text, []byte(m))
	return text[max(0, at-reach):min(len(text), at+reach)]
}
