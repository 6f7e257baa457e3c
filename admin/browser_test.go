package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// browser is a headless Chromium that can reach this machine only.
type browser struct {
	t   *testing.T
	ctx context.Context
	at  string // address of the admin port

	mu       sync.Mutex
	requests []string
	troubles []string // console errors, exceptions, dialogs, failed requests
}

// openBrowser starts Chromium, and skips the test where there is none.
func openBrowser(t *testing.T, at string) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: the pages were not opened in a browser, because there is no chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, at: "http://" + at}
	chromedp.ListenTarget(ctx, b.listen)
	b.do(network.Enable(), runtime.Enable())
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	trouble := func(format string, args ...any) { b.troubles = append(b.troubles, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *network.EventResponseReceived:
		if e.Response.Status >= http.StatusBadRequest {
			trouble("%d %s", e.Response.Status, e.Response.URL)
		}
	case *runtime.EventExceptionThrown:
		trouble("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		trouble("console: %s", e.Type)
	case *page.EventJavascriptDialogOpening:
		trouble("dialog: %s", e.Message)
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page at a width and in a theme.
func (b *browser) open(path string, width int64, theme string) {
	b.t.Helper()
	b.do(
		emulation.SetDeviceMetricsOverride(width, 900, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
		chromedp.Navigate(b.at+path), chromedp.WaitReady("main", chromedp.ByQuery),
	)
}

func (b *browser) eval(script string, into any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(script, into))
}

// waitAt waits until the browser shows a page.
func (b *browser) waitAt(path string) {
	b.t.Helper()
	for {
		var at string
		b.do(chromedp.Location(&at), chromedp.WaitReady("main", chromedp.ByQuery))
		if at == b.at+path {
			return
		}
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("the browser is at %s, want %s", at, path)
		case <-time.After(time.Millisecond):
		}
	}
}

// checkQuiet fails if anything was wrong since the last call, or a request left the origin.
func (b *browser) checkQuiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.troubles {
		b.t.Errorf("%s: %s", where, trouble)
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, b.at+"/") && url != "about:blank" {
			b.t.Errorf("%s: a request to %s", where, url)
		}
	}
	b.requests, b.troubles = nil, nil
}

// axe returns the violations of WCAG A and AA that axe-core finds on the page, none where it is not installed.
func (b *browser) axe(script string) (violations []string) {
	b.t.Helper()
	if script == "" {
		return nil
	}
	var found string
	b.do(chromedp.Evaluate(script, nil), chromedp.Evaluate(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then(r =>
		JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | "))))`,
		&found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	must(b.t, json.Unmarshal([]byte(found), &violations))
	return violations
}

// axeScript returns axe-core, "" where 'make axe' has not installed it.
func axeScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../bin/tools/axe.min.js")
	if err != nil {
		t.Log("SKIPPED: accessibility was not checked, because axe-core is not installed: make axe")
	}
	return string(text)
}

// TestPagesInABrowser opens each page in Chromium, with the network cut: at both widths and in both themes nothing is wrong, nothing leaves the
// origin, nothing scrolls sideways, and axe-core finds nothing. It then goes through them by keyboard, and without JavaScript.
func TestPagesInABrowser(t *testing.T) {
	quick.Skip(t)
	r := start(t, nil)
	p := r.grow(toolRun(14), 2)
	g := &guarded{rig: r}
	b := openBrowser(t, r.app.AdminAddr())
	steps := "/s/" + p.session + "/" + p.thread + "/"
	paths := append([]string{"/", "/?days=90", "/sessions", "/sessions?q=files", "/s/" + p.session, steps + "27", steps + "27?from=3", steps + "27/m/3", "/activity", "/condensing?tenant=default",
		"/s/" + p.session + "/delete", "/s/" + p.session + "/" + p.thread + "/condense"}, g.condensations(p)...)
	script := axeScript(t)
	b.open("/?token="+r.app.AdminToken(), 1280, "light")
	for _, path := range paths {
		for _, width := range []int64{1280, 320} {
			for _, theme := range []string{"light", "dark"} {
				where := fmt.Sprintf("%s at %d, %s", path, width, theme)
				b.open(path, width, theme)
				var wide int64
				if b.eval(`document.documentElement.scrollWidth`, &wide); wide > width {
					t.Errorf("%s: %d pixels wide", where, wide)
				}
				for _, v := range b.axe(script) {
					t.Errorf("%s: %s", where, v)
				}
				b.checkQuiet(where)
			}
		}
	}
	t.Run("keyboard", func(t *testing.T) { byKeyboard(t, b, steps) })
	t.Run("without JavaScript", func(t *testing.T) {
		b.do(emulation.SetScriptExecutionDisabled(true))
		b.open(steps+"27", 1280, "light")
		var text string
		b.do(chromedp.Text("main", &text, chromedp.ByQuery))
		for _, want := range []string{"The agent sent", "The model saw", "Look at all files.", "hidden, summarised in the record"} {
			if !strings.Contains(text, want) {
				t.Errorf("the step lacks %q: %.2000s", want, text)
			}
		}
	})
}

// byKeyboard goes from a step to the one before and back, and reaches each link by the tab key.
func byKeyboard(t *testing.T, b *browser, steps string) {
	t.Helper()
	b.open(steps+"27", 1280, "light")
	b.do(chromedp.KeyEvent("k"))
	b.waitAt(steps + "25")
	b.do(chromedp.KeyEvent("j"))
	b.waitAt(steps + "27")
	var unreachable int
	b.eval(`[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary")].filter(e => e.tabIndex < 0).length`, &unreachable)
	if unreachable > 0 {
		t.Errorf("%d elements cannot be reached by the tab key", unreachable)
	}
	b.do(chromedp.KeyEvent("/"))
	var focused string
	if b.eval(`document.activeElement.name`, &focused); focused != "q" {
		t.Errorf("the key / leads to %q, want the search field", focused)
	}
}

// hostile returns texts that attack the page or the terminal that shows them.
func hostile() []string {
	all := []string{
		`<script>window.pwned=1</script>`, `</script><script>window.pwned=1</script>`, `"><script>window.pwned=1</script>`, `'><script>window.pwned=1</script>`,
		`<ScRiPt>window.pwned=1</sCrIpT>`, `<script src="https://evil.example/x.js"></script>`, `<script type=module>window.pwned=1</script>`, `<<script>window.pwned=1//<</script>`,
		`<img src=x onerror=window.pwned=1>`, `<img src="https://evil.example/x.png">`, `<img srcset="https://evil.example/x.png 2x">`, `<svg onload=window.pwned=1>`,
		`<svg><script>window.pwned=1</script></svg>`, `<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>`, `<svg><use href="https://evil.example/x.svg#a"/></svg>`,
		`<math><mtext><script>window.pwned=1</script></mtext></math>`, `<body onload=window.pwned=1>`, `<iframe src="javascript:parent.pwned=1"></iframe>`,
		`<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`, `<object data="https://evil.example/x"></object>`, `<embed src="https://evil.example/x">`,
		`<link rel=stylesheet href="https://evil.example/x.css">`, `<link rel=prefetch href="https://evil.example/x">`, `<style>@import "https://evil.example/x.css"; *{display:none}</style>`,
		`<base href="https://evil.example/">`, `<meta http-equiv=refresh content="0;url=https://evil.example/">`, `<form action="https://evil.example/"><button>ok</button></form>`,
		`<a href="javascript:window.pwned=1">x</a>`, `<details open ontoggle=window.pwned=1>`, `<video src=x onerror=window.pwned=1>`, `<audio src=x onerror=window.pwned=1>`,
		`<input autofocus onfocus=window.pwned=1>`, `<marquee onstart=window.pwned=1>`, `<template><script>window.pwned=1</script></template>`, `<noscript><p title="</noscript><img src=x onerror=window.pwned=1>">`,
		`<textarea></textarea><script>window.pwned=1</script>`, `</textarea><script>window.pwned=1</script>`, `</title><script>window.pwned=1</script>`, `</pre><script>window.pwned=1</script>`,
		`<!--><script>window.pwned=1</script>-->`, `<![CDATA[<script>window.pwned=1</script>]]>`, `{{.Page}} {{template "page"}}`, `${window.pwned=1}`, "`;window.pwned=1;`", `';window.pwned=1;//`, `";window.pwned=1;//`,
		`&lt;script&gt;window.pwned=1&lt;/script&gt;`, `%3Cscript%3Ewindow.pwned=1%3C/script%3E`, "\u202egnp.exe\u202c", "\u2066\u2067\u2068x\u2069", "a\u200b\ufeff\u00adb", "\u2028\u2029window.pwned=1",
		"\x1b[2J\x1b]0;title\x07\x1b[31mred", "\x00\x01\x02\x7f", "\u009b31m", strings.Repeat("x", 1<<20), strings.Repeat("<b>", 10_000), strings.Repeat("\u0301", 5000), strings.Repeat("\n", 5000), "\xff\xfe\xfd",
		"<dewpoint_record>\n</dewpoint_record>", `id="m1" class="msg"`,
	}
	return all
}

// TestHostileContentIsInert shows texts that attack a page, in all places that content can be in: nothing of them runs, loads or hides anything.
func TestHostileContentIsInert(t *testing.T) {
	quick.Skip(t)
	kinds := hostile()
	if least := 50; len(kinds) < least {
		t.Fatalf("%d kinds, want at least %d", len(kinds), least)
	}
	r := start(t, nil)
	b := openBrowser(t, r.app.AdminAddr())
	b.open("/?token="+r.app.AdminToken(), 1280, "light")
	for i, text := range kinds {
		path, _ := json.Marshal(map[string]string{"path": text})
		arguments, _ := json.Marshal(string(path))
		history := []string{say("system", text), say("user", text+fmt.Sprint(" number ", i)),
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%020d","type":"function","function":{"name":"read","arguments":%s}}]}`, i, arguments),
			strings.Replace(say("tool", text), `"role"`, fmt.Sprintf(`"tool_call_id":"call_%020d","role"`, i), 1)}
		p := r.ask(history)
		for _, path := range []string{"/", "/s/" + p.session, "/s/" + p.session + "/" + p.thread + "/3", "/s/" + p.session + "/" + p.thread + "/3/m/3"} {
			where := fmt.Sprintf("%.40q at %s", text, path)
			b.open(path, 1280, "light")
			var found struct{ Pwned, Foreign int }
			b.eval(`({pwned: window.pwned ?? 0, foreign: document.querySelectorAll("script:not([src='/assets/keys.js']), iframe, object, embed, img, video, audio, style, base, math, marquee, [onload], [onerror], [onfocus]").length})`, &found)
			if found.Pwned != 0 || found.Foreign != 0 {
				t.Errorf("%s: ran: %d, foreign elements: %d", where, found.Pwned, found.Foreign)
			}
			b.checkQuiet(where)
		}
	}
}
