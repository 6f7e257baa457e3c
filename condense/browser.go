package condense

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// browserTools are parts of the names of tools whose results are pages or screenshots: a tool is a browser's if its
// name, in lower case and without hyphens, underscores and points, has one of them in it, or is one of browserExact.
//
//	browse                OpenHands browse, browse_interactive; browser_navigate, browser_use and the like
//	playwright, puppeteer, selenium, chromedevtools, webdriver   MCP servers that drive a browser
//	navigatepage, gotourl, openurl, visitpage, visiturl, visitwebpage   single actions of such servers
//	webfetch, fetchurl, fetchweb, fetchpage, urlfetch, readurl, webpage, firecrawl   pages as text
//	computeruse, screenshot   screens
var browserTools = []string{"brows", "playwright", "puppeteer", "selenium", "chromedevtools", "webdriver", "navigatepage", "gotourl",
	"openurl", "visitpage", "visiturl", "webfetch", "fetchurl", "fetchweb", "fetchpage", "urlfetch", "readurl", "webpage",
	"firecrawl", "computeruse", "screenshot"}

// browserExact are names that are a browser's as a whole only, after a server's name (mcp__web__fetch, web.fetch) if there
// is one.
var browserExact = []string{"fetch", "computer", "visit"}

// BrowserOutput replaces the content of all but the newest browser observations: the page's URL is what remains. It
// forgets nothing: every request's view is made anew. Results in the newest exchange, which no model has answered yet,
// are left alone.
type BrowserOutput struct {
	AttentionWindow int // browser observations that are left as they are
}

var _ Condenser = BrowserOutput{}

// Name implements Condenser.
func (BrowserOutput) Name() string { return "browser_output" }

// Condense implements Condenser.
func (b BrowserOutput) Condense(in Input) Decision {
	pages := browserPages(in)
	newest := newestExchange(in.View)
	e := edit{in: in}
	for n, page := range pages {
		if page.item < newest && n < len(pages)-max(b.AttentionWindow, 0) {
			e.rewrite(page.item, "Visited URL "+page.url(in)+"\nContent omitted")
		}
	}
	return e.decision()
}

// page is a browser observation of a view.
type page struct {
	item int
	call session.Call // that it answers
}

// browserPages finds the browser observations, by the calls they answer. Only messages that name a browser tool are
// decoded.
func browserPages(in Input) []page {
	var pages []page
	open := map[string]session.Call{}
	for i, item := range in.View.Items {
		if item.Index < 0 {
			continue
		}
		m := &in.View.History.Messages[item.Index]
		for _, id := range m.Calls {
			delete(open, id)
		}
		if item.Kind == session.Action && mayBrowse(item.Raw) {
			for _, call := range read(in.Codec, item.Raw).Calls {
				if browses(call.Name) {
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

// browses reports whether a tool is a browser's.
func browses(tool string) bool {
	tool = strings.ToLower(tool)
	last := tool[strings.LastIndexAny(tool, ".:/")+1:]
	if at := strings.LastIndex(last, "__"); at >= 0 {
		last = last[at+2:]
	}
	for _, name := range browserExact {
		if last == name {
			return true
		}
	}
	plain := strings.NewReplacer("_", "", "-", "", ".", "").Replace(tool)
	for _, part := range browserTools {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}

// browserHints are such that a message which names a browser tool has one of them in it, in whatever case.
var browserHints = [][]byte{[]byte("brows"), []byte("playw"), []byte("puppet"), []byte("seleni"), []byte("chrome"), []byte("driver"),
	[]byte("page"), []byte("url"), []byte("visit"), []byte("fetch"), []byte("crawl"), []byte("computer"), []byte("screen")}

func mayBrowse(raw []byte) bool {
	lower := bytes.ToLower(raw)
	for _, hint := range browserHints {
		if bytes.Contains(lower, hint) {
			return true
		}
	}
	return false
}

// maxURL is the length of an address shown, in bytes.
const maxURL = 200

// unknownURL stands for the address of a page that neither the call nor the page tells.
const unknownURL = "(unknown)"

// url is the page's address: from the call's arguments, else the first one in its content.
func (p page) url(in Input) string {
	if url := argumentURL(p.call.Arguments); url != "" {
		return url
	}
	url := record.FirstURL(read(in.Codec, in.View.Items[p.item].Raw).Text)
	if url == "" {
		return unknownURL
	}
	return url
}

// argumentURL looks for an address in a call's arguments: where it is named so, else the first one anywhere.
func argumentURL(arguments string) string {
	var named struct {
		URL, URI, Href, Link string
		URLs                 []string
	}
	_ = json.Unmarshal([]byte(arguments), &named) // what can not be read is not there
	for _, url := range append([]string{named.URL, named.URI, named.Href, named.Link}, named.URLs...) {
		if url = strings.Join(strings.Fields(record.Printable(url)), " "); url != "" {
			return url[:runeBorder(url, maxURL)]
		}
	}
	return record.FirstURL(record.Unescape(arguments))
}

// runeBorder is the largest length up to n at which text can be cut between runes.
func runeBorder(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return n
}
