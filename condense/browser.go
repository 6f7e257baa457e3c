package condense

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// BrowserOutput replaces the content of all but the newest browser observations: the page's URL is what remains. It
// forgets nothing: every request's view is made anew. Results in the newest exchange, which no model has answered yet,
// are left alone.
type BrowserOutput struct {
	AttentionWindow int  // browser observations that are left as they are
	Batched         bool // as for ObservationMasking
}

func (BrowserOutput) Name() string { return "browser_output" }

func (b BrowserOutput) Condense(in Input) Decision {
	items := maskable(in.View, b.Batched)
	pages := browserPages(in, items)
	newest, texts := newestExchange(items), map[int]string{}
	for _, page := range pages[:max(len(pages)-max(b.AttentionWindow, 0), 0)] {
		if page.item < newest {
			texts[page.item] = "Visited URL " + page.url(in) + "\nContent omitted"
		}
	}
	return rewritten(in, texts)
}

// page is a browser observation of a view.
type page struct {
	item int
	call session.Call // that it answers
}

// browserPages finds the browser observations among a view's items, by the calls they answer. Only messages that name a browser tool are
// decoded.
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
		if item.Kind == session.Action && agents.MayBrowse(item.Raw) {
			for _, call := range read(in.Codec, item.Raw).Calls {
				if agents.Browses(call.Name) {
					open[call.ID] = call
				}
			}
		}
		if call, ok := open[m.Result]; ok && item.Kind == session.Observation {
			pages = append(pages, page{item: i, call: call})
		}
	}
	return pages
}

// maxURL is the length of an address shown, in bytes.
const maxURL = 200

// url is the page's address: from the call's arguments, else the first one in its content.
func (p page) url(in Input) string {
	if url := argumentURL(p.call.Arguments); url != "" {
		return url
	}
	return cmp.Or(excerpt.FirstURL(read(in.Codec, in.View.Items[p.item].Raw).Text), "(unknown)")
}

// argumentURL looks for an address in a call's arguments: where it is named so, else the first one anywhere.
func argumentURL(arguments string) string {
	var named struct {
		URL, URI, Href, Link string
		URLs                 []string
	}
	_ = json.Unmarshal([]byte(arguments), &named) // what cannot be read is not there
	for _, url := range append([]string{named.URL, named.URI, named.Href, named.Link}, named.URLs...) {
		if url = strings.Join(strings.Fields(record.Printable(url)), " "); url != "" {
			return strings.ToValidUTF8(url[:min(len(url), maxURL)], "")
		}
	}
	first := ""
	excerpt.Values(arguments, func(value string) {
		if first == "" {
			first = excerpt.FirstURL(value)
		}
	})
	return first
}
