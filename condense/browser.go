package condense

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// BrowserOutput replaces the content of all but the newest browser observations by the URL of the page. It hides no
// messages: the view is recomputed for every request. Results in the newest exchange, which no model has answered yet, are
// not changed.
type BrowserOutput struct {
	AttentionWindow int  // number of the newest browser observations that are not changed
	Batched         bool // see ObservationMasking
}

func (BrowserOutput) Name() string { return "browser_output" }

func (b BrowserOutput) Condense(in Input) Decision {
	items := maskable(in.View, b.Batched)
	pages := browserPages(in, items)
	newest := newestExchange(items)
	texts, stays := map[int]string{}, in.stays()
	for _, page := range pages[:max(len(pages)-max(b.AttentionWindow, 0), 0)] {
		if page.item < newest && !stays(&items[page.item]) {
			texts[page.item] = "Visited URL " + page.url(in) + "\nContent omitted"
		}
	}
	return replaceContent(in, texts)
}

// page is a browser observation in a view.
type page struct {
	item int
	call session.Call // the call that it answers
}

// browserPages returns the browser observations of a view.
func browserPages(in Input, items []session.Item) []page {
	var pages []page
	open := map[string]session.Call{}
	for i, item := range items {
		if item.Index < 0 {
			continue
		}
		m := &in.View.History.Messages[item.Index]
		for _, id := range m.Calls {
			delete(open, id)
		}
		if item.Kind == session.Action {
			for _, call := range read(in.Codec, item.Raw).Calls {
				if agents.Browses(call.Name) {
					open[call.ID] = call
				}
			}
		}
		if call, ok := open[m.Result]; ok && item.Kind == session.Observation && !m.Lasts {
			pages = append(pages, page{item: i, call: call})
		}
	}
	return pages
}

// maxURL is the maximum length of a URL that is shown, in bytes.
const maxURL = 200

// url returns the page's URL: from the call's arguments, else the first one in its content.
func (p page) url(in Input) string {
	if url := argumentURL(p.call.Arguments); url != "" {
		return url
	}
	return cmp.Or(excerpt.FirstURL(read(in.Codec, in.View.Items[p.item].Raw).Text), "(unknown)")
}

// argumentURL returns the URL in a call's arguments, preferably from a field named for it, or "".
func argumentURL(arguments string) string {
	var named struct {
		URL, URI, Href, Link string
		URLs                 []string
	}
	_ = json.Unmarshal([]byte(arguments), &named) // fields that cannot be decoded stay empty
	for _, url := range append([]string{named.URL, named.URI, named.Href, named.Link}, named.URLs...) {
		url = strings.Join(strings.Fields(record.Printable(url)), " ")
		if url != "" {
			return strings.ToValidUTF8(url[:min(len(url), maxURL)], "")
		}
	}
	for value := range excerpt.Values(arguments) {
		if url := excerpt.FirstURL(value); url != "" {
			return url
		}
	}
	return ""
}
