package ui_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/dewpoint-proxy/dewpoint/admin/ui"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// day is the time of all that the tests show.
var day = time.Date(2026, 11, 29, 14, 2, 11, 0, time.UTC)

// maxPage is the largest size of a page with its stylesheet and scripts.
const maxPage = 150 << 10

var operator = ui.Frame{Area: "sessions", Person: "ops", CSRF: "c", Can: ui.Can{Read: true, Change: true, All: true}}

// always returns a message's content.
func always(c session.Content) ui.Content { return func() *session.Content { return &c } }

func say(text string) ui.Content { return always(session.Content{Text: text}) }

// run returns the reads of a step whose history was condensed: messages 4 to 7 are hidden, 9 is trimmed, 10 and 11 are new.
func run() *ui.StepReads {
	call := func(path string) ui.Content {
		return always(session.Content{Calls: []session.Call{{ID: "c", Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q}`, path)}}})
	}
	result := func(text string) ui.Content { return always(session.Content{Name: "read_file", Text: text}) }
	c := session.Condensation{
		ID: session.CondensationID{Thread: "thread", Seq: 9}, Prefix: 7, Forgotten: []session.Range{{From: 4, To: 8}}, ForgottenTokens: 900, SummaryTokens: 120, Offset: 4,
		Reason: session.ReasonTokens, Condenser: "llm", Time: day,
		Making: session.Making{Grounding: session.Grounding{Grounded: 4, Lines: 5}, Cost: session.Cost{Calls: 1, Used: session.Usage{Input: 900, Output: 120}, Nano: 4_600_000}},
		Model:  "gpt-5-mini", Before: session.Size{Events: 9, Tokens: 31_000}, After: session.Size{Events: 6, Tokens: 15_000},
	}
	trim := result("internal/payments/retry.go:12 key\n[… 2,140 tokens left out …]\nlast line")
	in := &ui.StepReads{
		Place: ui.Place{Session: "ses", Thread: "thread", Title: "Find the double charge", At: 11}, Steps: []int{1, 3, 5, 7, 9, 11},
		Thread:  session.Thread{ID: "thread", Session: "ses", Purpose: session.PurposeMain, Len: 11, Lists: session.Lists{Condensations: []session.Condensation{c}}},
		Applied: []session.Condensation{c},
		Sent:    session.Size{Events: 12, Tokens: 31_400}, Saw: session.Size{Events: 9, Tokens: 15_200},
		Messages: []ui.Message{
			{0, session.System, 320, say("You are a careful coding agent.")},
			{1, session.User, 32, say("Retrying a payment after a timeout charges twice. Find out why. Never touch the API of package ledger.")},
			{2, session.Action, 25, call("internal/payments/retry.go")},
			{3, session.Observation, 2300, result(strings.Repeat("backoff := r.base << uint(min(i, 6))\n", 80))},
			{4, session.Action, 25, call("internal/payments/gateway.go")},
			{5, session.Observation, 400, result("func (g *Gateway) Charge(ctx context.Context, id string) error {\n\tkey := uuid.New() // idempotency\n}")},
			{6, session.User, 12, say("Money is in minor units everywhere, please keep it that way.")},
			{7, session.Agent, 60, say("The key is made in internal/payments/gateway.go at each attempt.")},
			{8, session.Action, 25, call("internal/queue/worker.go")},
			{9, session.Observation, 4000, result("internal/payments/retry.go:12 key\n" + strings.Repeat("x := 1\n", 2000) + "last line")},
			{10, session.Agent, 20, say("Now I fix the worker.")},
			{11, session.User, 8, say("Good. Go on.")},
		},
	}
	text := record.Summary{
		Record: "USER_CONTEXT: Fix the double charge.\nCURRENT_STATE: internal/payments/gateway.go makes a new key at each attempt.",
		Words:  "- Money is in minor units everywhere, please keep it that way.", Excerpts: "### read_file internal/payments/gateway.go\n\tkey := uuid.New() // idempotency",
	}.String()
	for i := range in.Messages {
		switch {
		case i == 4:
			in.View = append(in.View, ui.Seen{Index: -1, Record: text})
		case i > 4 && i < 8:
		case i == 9:
			in.View = append(in.View, ui.Seen{Index: i, Fate: ui.Trimmed, Content: trim})
		default:
			in.View = append(in.View, ui.Seen{Index: i, Fate: ui.Kept})
		}
	}
	return in
}

// sizes returns the sizes of n steps, condensed at each tenth.
func sizes(n int) (steps []ui.StepSize) {
	for i := range n {
		s := ui.StepSize{At: 2*i + 1, Time: day, Messages: 2*i + 1, Sent: 500 + 400*i, Prompt: 320, Kept: 180 + 400*(i%10), New: 300, Cached: 200 * (i % 10)}
		if i%10 == 0 && i > 0 {
			s.Record, s.Made, s.Done = 700, []ui.Link{{Text: fmt.Sprint(i / 10), URL: "/s/ses/thread/c/thread.9"}}, "the limit on tokens was exceeded"
		}
		steps = append(steps, s)
	}
	return steps
}

func sessionPage(n int) ui.Session {
	in := run()
	return ui.NewSession(&ui.SessionReads{
		Session: session.Session{ID: "ses", Tenant: "team", Key: "nightly", Created: day, Seen: day}, Title: "Find the double charge", Steps: sizes(n),
		Threads: []session.Thread{
			in.Thread, {ID: "child", Session: "ses", Purpose: session.PurposeMain, Origin: session.Origin{Caller: "thread"}, Len: 4, Seen: day},
			{ID: "fork", Session: "ses", Purpose: session.PurposeMain, Origin: session.Origin{Parent: "child", ForkAt: 2}, Len: 3, Seen: day},
			{ID: "title", Session: "ses", Purpose: session.PurposeTitle, Len: 1, Seen: day},
		},
		Saved: ui.Saved{Tokens: 40_000, NotSent: 0.4, Rewritten: -0.2, Own: -0.01, Net: 0.19},
	})
}

func condensationPage() ui.Condensation {
	in := run()
	messages := append(in.Messages, ui.Message{12, session.Action, 30, always(session.Content{Calls: []session.Call{{Name: "read_file", Arguments: `{"path":"internal/payments/gateway.go"}`}}})})
	messages = append(messages, ui.Message{13, session.Agent, 30, say("What did Charge_of_Gateway say? See func_of_gateway.")})
	messages[5].Content = say("func_of_gateway and internal/payments/gateway.go")
	return ui.NewCondensation(&ui.CondensationReads{
		Place: in.Place, Thread: in.Thread, Steps: []int{1, 3, 5, 7, 9, 11, 13}, MadeAt: 8, One: in.Applied[0], Messages: messages,
		Text: in.View[4].Record, Before: record.Summary{Record: "USER_CONTEXT: Fix the double charge.\nCURRENT_STATE: unknown."}.String(),
	})
}

func pages() map[string]ui.Page {
	whole, _ := ui.NewWhole(run(), 9, 1)
	list := ui.Sessions{Total: 1, Tenants: []string{"team", "other"}, Rows: []ui.SessionRow{
		ui.NewSessionRow(&session.Session{ID: "ses", Tenant: "team", Key: "nightly", Requests: 6, Threads: []session.ThreadID{"thread"}, Seen: day}, "Find the double charge"),
	}}
	return map[string]ui.Page{
		"step": ui.NewStep(run()), "session": sessionPage(25), "condensation": condensationPage(), "whole": whole, "sessions": list,
		"login": ui.Login{Next: "/sessions", CSRF: "c", Wrong: true}, "notice": ui.Notice{Title: "Not here", Text: "There is no such session."},
		"confirm": ui.Confirm{Title: "Delete?", Text: "All of it.", Action: "/s/ses/delete", Button: "Delete", Bad: true, Back: "/", CSRF: "c", Fields: []ui.Field{{Name: "mode", Label: "Mode", Options: []string{"on", "off"}}}},
		"log":     ui.Log{Rows: []ui.LogRow{{Time: day, Who: "anna", Role: "auditor", What: "read content", On: "/s/ses", URL: "/s/ses", Tenant: "team"}}},
		"empty":   emptyOverview(), "overview": overviewPage(14, 3),
	}
}

func render(t *testing.T, p ui.Page) []byte {
	t.Helper()
	out, err := ui.New().Render(operator, p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPagesHaveTheirStructure compares what pages consist of with golden files.
func TestPagesHaveTheirStructure(t *testing.T) {
	for name, p := range pages() {
		got := outline(t, render(t, p))
		file := filepath.Join("testdata", name+".txt")
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v; got\n%s", name, err, got)
		}
	}
}

// outline writes a page as lines: an element with its class, id and address, and its text.
func outline(t *testing.T, page []byte) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			fmt.Fprintf(&b, "%s%.160q\n", strings.Repeat(" ", depth), strings.Join(strings.Fields(n.Data), " "))
		}
		if n.Type == html.ElementNode {
			if n.Data == "head" || n.Data == "path" || n.Data == "defs" {
				return
			}
			b.WriteString(strings.Repeat(" ", depth) + n.Data)
			for _, a := range n.Attr {
				switch a.Key {
				case "class":
					b.WriteString("." + strings.ReplaceAll(a.Val, " ", "."))
				case "id":
					b.WriteString("#" + a.Val)
				case "href", "action", "rel", "name", "role", "aria-label":
					fmt.Fprintf(&b, " %s=%s", a.Key, a.Val)
				}
			}
			b.WriteByte('\n')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(root, 0)
	return b.String()
}

// TestEachLinkOnAPageHasATarget checks that links between the record and the hidden messages lead to an element.
func TestEachLinkOnAPageHasATarget(t *testing.T) {
	page := string(render(t, ui.NewStep(run())))
	links := 0
	for _, part := range strings.Split(page, `href="#`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		if links++; !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("nothing on the page has the id %q", id)
		}
	}
	if want := 5; links < want { // from the record: a name, a person's words and an excerpt; and back
		t.Errorf("%d links, want at least %d", links, want)
	}
}

// TestALongHistoryFitsAPage checks the sizes of the pages of a session of 5,000 messages, whatever they contain.
func TestALongHistoryFitsAPage(t *testing.T) {
	fixed := 0
	for _, name := range []string{"style.css", "keys.js", "icon.svg"} {
		text, err := os.ReadFile(filepath.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		fixed += len(text)
	}
	for name, text := range map[string]string{"short": "ok", "long": strings.Repeat("a line of a file\n", 110), "escaped": strings.Repeat(`<&>"'`, 400), "large": strings.Repeat("<", 8<<10)} {
		long := run()
		long.Messages, long.View, long.Steps = long.Messages[:4], long.View[:4], nil
		for p := 4; p <= 5000; p++ {
			m := ui.Message{Pos: p, Kind: session.Agent, Tokens: 100, Content: say(text)}
			if p%2 == 1 {
				m.Kind, long.Steps = session.Observation, append(long.Steps, p)
			}
			long.Messages = append(long.Messages, m)
			if p > 4000 {
				long.View = append(long.View, ui.Seen{Index: p, Fate: ui.Kept})
			}
		}
		long.Place.At = 4999
		long.Applied[0].Forgotten[0].To = 4001
		var recorded strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&recorded, "DECISIONS: number %d <&>\n", i)
		}
		long.View = append(long.View[:4:4], append([]ui.Seen{{Index: -1, Record: recorded.String()}}, long.View[4:]...)...)
		step := ui.NewStep(long)
		if size := len(render(t, step)) + fixed; size > maxPage {
			t.Errorf("%s: the step's page has %d bytes with its assets, want at most %d", name, size, maxPage)
		}
		long.From = 2000
		if size := len(render(t, ui.NewStep(long))) + fixed; size > maxPage {
			t.Errorf("%s: a page of the list has %d bytes, want at most %d", name, size, maxPage)
		}
		whole, _ := ui.NewWhole(long, 4500, 1)
		if size := len(render(t, whole)) + fixed; size > maxPage {
			t.Errorf("%s: the page of a message has %d bytes, want at most %d", name, size, maxPage)
		}
	}
	if size := len(render(t, sessionPage(2500))) + fixed; size > maxPage {
		t.Errorf("the session's page has %d bytes, want at most %d", size, maxPage)
	}
}
