package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestPageAgreesWithTheTable: the sections of docs/clients.md are those of the table. 'go run ./lab/clients -only none -doc docs/clients.md'
// writes them.
func TestPageAgreesWithTheTable(t *testing.T) {
	page, table := pageAndTable(t)
	_, content, _, err := cut(page, sectionsPlace)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(content) != strings.TrimSpace(sections(table)) {
		t.Error("docs/clients.md has other sections: go run ./lab/clients -only none -doc docs/clients.md")
	}
}

// TestResultsAreOfThePinnedVersions: a new version in the table needs a new run.
func TestResultsAreOfThePinnedVersions(t *testing.T) {
	page, table := pageAndTable(t)
	_, content, _, err := cut(page, resultsPlace)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Clients {
		if !strings.Contains(content, "| "+c.link()+" | "+c.version()+" | ") {
			t.Errorf("docs/clients.md has no result of %s %s: make clients", c.Name, c.version())
		}
	}
}

// TestPageOfRunHasThePinnedVersions: docs/run.md says with which versions 'dewpoint run' was tried.
func TestPageOfRunHasThePinnedVersions(t *testing.T) {
	page, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range table.Clients {
		if c.Run != nil && !regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(c.Name)+`( \(.*\))? \| `+regexp.QuoteMeta(c.version())+` \|`).Match(page) {
			t.Errorf("docs/run.md has no row of %s %s: make clients-run", c.Name, c.version())
		}
	}
}

// TestJudgeOfRun: each kind of damage is noticed where only upstream's side is seen.
func TestJudgeOfRun(t *testing.T) {
	f := func(want string, damage func(*report, []fakeupstream.Request, map[int]part)) {
		t.Helper()
		requests, parts := make([]fakeupstream.Request, steps), map[int]part{}
		for i := range requests {
			parts[i], requests[i].Messages = mainLine, make([]json.RawMessage, 1+2*(i%20))
			requests[i].Path = "/v1/chat/completions"
		}
		r := report{said: "Dewpoint: 25 steps, 1 condensation, 1 of 2 tokens sent\n"}
		damage(&r, requests, parts)
		r.judgeRun(requests, parts)
		if got := strings.Join(r.problems, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("", func(*report, []fakeupstream.Request, map[int]part) {})
	f("24 requests came", func(_ *report, _ []fakeupstream.Request, parts map[int]part) { delete(parts, 3) })
	f("upstream refused", func(_ *report, requests []fakeupstream.Request, _ map[int]part) {
		requests[3].Refused = &fakeupstream.APIError{Status: 400}
	})
	f("no request became shorter", func(_ *report, requests []fakeupstream.Request, _ map[int]part) {
		for i := range requests {
			requests[i].Messages = make([]json.RawMessage, i)
		}
	})
	f("printed no total", func(r *report, _ []fakeupstream.Request, _ map[int]part) { r.said = "" })
	f("run printed", func(r *report, _ []fakeupstream.Request, _ map[int]part) {
		r.said = "Dewpoint: 25 steps, 0 condensations, "
	})
}

func pageAndTable(t *testing.T) (string, table) {
	t.Helper()
	page, err := os.ReadFile("../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	return string(page), table
}

// TestTableNamesNoRegistry: packages come from the registries that the user's package managers use.
func TestTableNamesNoRegistry(t *testing.T) {
	_, table := pageAndTable(t)
	if len(table.Clients) < 30 {
		t.Fatalf("%d clients", len(table.Clients))
	}
	for _, c := range table.Clients {
		for _, p := range append(c.Packages, c.Program...) {
			if strings.Contains(strings.ReplaceAll(p, address, ""), "://") {
				t.Errorf("%s: %s", c.Name, p)
			}
		}
	}
}

// seenRun is a run of one request, whose body and answer pass unchanged.
func seenRun() evidence {
	const sent, answer = `{"messages":[{"role":"user","content":"go"}]}`, `{"choices":[]}`
	exchangeOf := func(header map[string][]string) *exchange {
		x := &exchange{method: "POST", path: "/v1/chat/completions", sent: []byte(sent), status: 200, header: header}
		x.answer.WriteString(answer)
		return x
	}
	return evidence{
		near: []*exchange{exchangeOf(map[string][]string{
			"X-Request-Id": {"req_000000"}, "X-Dewpoint-Events": {"1;1"}, "X-Dewpoint-Session": {"s"}, "X-Dewpoint-Thread": {"t"},
		})},
		far:      []*exchange{exchangeOf(map[string][]string{"X-Request-Id": {"req_000000"}})},
		upstream: []fakeupstream.Request{{Path: "/v1/chat/completions", Body: []byte(sent)}},
		parts:    map[int]part{0: mainLine},
	}
}

// TestJudge: each kind of damage is noticed.
func TestJudge(t *testing.T) {
	f := func(want string, damage func(*evidence)) {
		t.Helper()
		e := seenRun()
		damage(&e)
		r := report{client: client{Protocol: "chat", Uncounted: true}}
		r.judge(e)
		// One request is fewer than a task has; nothing else may be wrong.
		const few = "1 requests came, not 25"
		if got := strings.Replace(strings.Join(r.problems, "\n"), few, "", 1); want == "" && strings.TrimSpace(got) != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", r.problems, want)
		}
	}
	f("", func(*evidence) {})
	f("upstream refused", func(e *evidence) { e.upstream[0].Refused = &fakeupstream.APIError{Status: 400} })
	f("was answered with 500", func(e *evidence) { e.near[0].status = 500 })
	f("the request was altered", func(e *evidence) { e.near[0].sent = []byte(`{"messages":[ {"role":"user","content":"go"}]}`) })
	f("the newest message was altered", func(e *evidence) {
		e.near[0].header["X-Dewpoint-Events"] = []string{"2;1"}
		e.near[0].sent = []byte(`{"messages":[{"role":"user","content":"went"}]}`)
	})
	f("the answer was altered", func(e *evidence) { e.near[0].answer.WriteString(" ") })
	f("forwarded unread", func(e *evidence) { e.near[0].header["X-Dewpoint-Unread"] = []string{"path"} })
	f("its task is 0 threads", func(e *evidence) { delete(e.near[0].header, "X-Dewpoint-Thread") })
	f("no request of upstream", func(e *evidence) { delete(e.near[0].header, "X-Request-Id") })
	f("main and other share the thread t", func(e *evidence) {
		e.near, e.upstream, e.parts[1] = append(e.near, seenRun().near...), append(e.upstream, e.upstream[0]), other
		e.near[1].header["X-Request-Id"] = []string{"req_000001"}
	})
}

// TestComments: what Dewpoint adds to a stream that had to wait is told from upstream's events.
func TestComments(t *testing.T) {
	added, rest := comments(": waiting\n\n: x-dewpoint-condensed: events\n\ndata: {}\n\ndata: [DONE]\n\n")
	if len(added) != 2 || added[1] != "x-dewpoint-condensed: events" || rest != "data: {}\n\ndata: [DONE]\n\n" {
		t.Errorf("%q %q", added, rest)
	}
}

// TestUnreachable: only a registry that cannot be reached excuses a client from its test.
func TestUnreachable(t *testing.T) {
	for text, want := range map[string]bool{
		"npm error code ENOTFOUND": true, "error: Request failed: dns error": true, "npm error notarget No matching version found for pi@0.0.0": false,
		"No solution found when resolving dependencies": false,
	} {
		if unreachable(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
