package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// evidence is what was seen of a run: between client and Dewpoint, between Dewpoint and upstream, and by upstream.
type evidence struct {
	near, far []*exchange
	upstream  []fakeupstream.Request
	parts     map[int]part
}

// report is the result of a run.
type report struct {
	client  client
	missing string // why it could not be installed; nothing else is set then
	said    string

	requests      int // of the client, to the model
	condensations int
	sessions      map[string]bool
	threads       map[string]bool
	causes        map[string]int // why condensations that were due did not happen
	unread        int
	problems      []string
}

// modelPaths are the paths of requests to a model.
var modelPaths = regexp.MustCompile(`/(chat/completions|responses|messages|models/[^/]+:(stream)?[gG]enerateContent)$`)

func (x *exchange) asksModel() bool {
	return x.method == http.MethodPost && modelPaths.MatchString(x.path)
}

// judge checks every exchange of a run.
func (r *report) judge(e evidence) {
	r.sessions, r.threads, r.causes = map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, up := range e.upstream {
		path, _, _ := strings.Cut(up.Path, "?")
		if up.Refused != nil && modelPaths.MatchString(path) { // clients may ask for paths that tell servers apart
			r.problem("upstream refused %s: %v", up.Path, up.Refused)
		}
	}
	places := map[part]map[string]bool{mainLine: {}, subAgent: {}, other: {}}
	mainSessions := map[string]bool{}
	for _, x := range e.near {
		if !x.asksModel() {
			continue
		}
		r.requests++
		facts := factsOf(x)
		r.note(facts)
		upstream := e.answered(x)
		r.compare(x, facts, e, upstream)
		if who, known := e.parts[upstream]; known && facts.get("Thread") != "" {
			places[who][facts.get("Thread")] = true
			if who != other {
				mainSessions[facts.get("Session")] = true
			}
		}
	}
	r.conclude(places, mainSessions)
}

// conclude checks what must hold of the whole run.
func (r *report) conclude(threads map[part]map[string]bool, sessions map[string]bool) {
	c := r.client
	if least := max(steps, c.Turns); r.requests < least {
		r.problem("%d requests came, not %d", r.requests, least)
	}
	if r.unread > 0 {
		r.problem("%d requests were forwarded unread", r.unread)
	}
	if !c.Uncounted && r.condensations == 0 {
		r.problem("nothing was condensed")
	}
	if len(sessions) != 1 {
		r.problem("its task and its sub-agents are %d sessions", len(sessions))
	}
	if n := len(threads[mainLine]); n != 1 {
		r.problem("its task is %d threads", n)
	}
	if c.Delegate != nil && len(threads[subAgent]) != 1 {
		r.problem("its sub-agent is %d threads", len(threads[subAgent]))
	}
	for a, list := range threads {
		for b, others := range threads {
			for t := range list {
				if a < b && others[t] {
					r.problem("%s and %s share the thread %s", a, b, t)
				}
			}
		}
	}
}

func (r *report) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// facts are Dewpoint's headers about a request, without their prefix. A stream that had to wait has some of them as comments.
type facts map[string][]string

const prefix = "X-Dewpoint-"

func factsOf(x *exchange) facts {
	out := facts{}
	for name, values := range x.header {
		if rest, ours := strings.CutPrefix(name, prefix); ours {
			out[rest] = values
		}
	}
	added, _ := comments(x.answer.String())
	for _, line := range added {
		name, value, _ := strings.Cut(line, ": ")
		if rest, ours := strings.CutPrefix(http.CanonicalHeaderKey(name), prefix); ours {
			out[rest] = append(out[rest], value)
		}
	}
	return out
}

func (f facts) get(name string) string {
	if len(f[name]) == 0 {
		return ""
	}
	return f[name][0]
}

// note counts what Dewpoint says of a request.
func (r *report) note(f facts) {
	if s := f.get("Session"); s != "" {
		r.sessions[s] = true
	}
	if t := f.get("Thread"); t != "" {
		r.threads[t] = true
	}
	r.condensations += len(f["Condensed"])
	for _, cause := range f["Condense-Failed"] {
		r.causes[cause]++
	}
	if f.get("Unread") != "" {
		r.unread++
	}
}

// answered returns the number of the upstream request that an exchange was answered with, or -1.
func (e evidence) answered(x *exchange) int {
	_, number, _ := strings.Cut(x.header.Get("X-Request-Id"), "req_")
	if n, err := strconv.Atoi(number); err == nil && n < len(e.upstream) {
		return n
	}
	return -1
}

// compare checks that the client got upstream's answer, and upstream the client's request: all of it if nothing is condensed, or else its newest
// message.
func (r *report) compare(x *exchange, f facts, e evidence, n int) {
	if x.status >= http.StatusBadRequest {
		r.problem("%s was answered with %d: %.300s", x.path, x.status, x.answer.String())
		return
	}
	if n < 0 {
		r.problem("%s: no request of upstream belongs to the answer", x.path)
		return
	}
	up := e.upstream[n]
	before, after, _ := strings.Cut(f.get("Events"), ";")
	switch {
	case f.get("Unread") != "" || before == after:
		if !bytes.Equal(up.Body, x.sent) {
			r.problem("%s: nothing was condensed, but the request was altered: %s", x.path, difference(x.sent, up.Body))
		}
	default:
		if sent := newest(x.sent); sent != nil && !bytes.Equal(sent, newest(up.Body)) {
			r.problem("%s: the newest message was altered: %s", x.path, difference(sent, newest(up.Body)))
		}
	}
	_, got := comments(x.answer.String())
	for _, there := range e.far {
		if there.asksModel() && there.header.Get("X-Request-Id") == x.header.Get("X-Request-Id") && there.answer.String() != got {
			r.problem("%s: the answer was altered: %s", x.path, difference(there.answer.Bytes(), []byte(got)))
		}
	}
}

// newest returns the last message of a body, nil if that cannot be read.
func newest(body []byte) json.RawMessage {
	var top struct{ Messages, Input, Contents []json.RawMessage }
	if json.Unmarshal(body, &top) != nil {
		return nil
	}
	all := slices.Concat(top.Messages, top.Input, top.Contents)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// difference shows where two texts part.
func difference(want, got []byte) string {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	show := func(text []byte) string { return fmt.Sprintf("%.160q", text[max(0, min(len(text), at-30)):]) }
	return fmt.Sprintf("at byte %d %s became %s", at, show(want), show(got))
}

// outcome says in a word or two how the run went.
func (r *report) outcome() string {
	switch {
	case r.missing != "":
		return "not installed"
	case len(r.problems) > 0:
		return "**failed**"
	}
	return "fine"
}

// notDone lists why condensations that were due did not happen.
func (r *report) notDone() string {
	var out []string
	for _, cause := range slices.Sorted(maps.Keys(r.causes)) {
		out = append(out, fmt.Sprintf("%s %d", cause, r.causes[cause]))
	}
	return strings.Join(out, ", ")
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "%-34s %-13s %3d requests, %d condensations", r.client.Name+" "+r.client.version(), r.outcome(), r.requests, r.condensations)
	if r.sessions != nil { // not if 'dewpoint run' started it
		fmt.Fprintf(out, ", sessions/threads %d/%d %s", len(r.sessions), len(r.threads), r.notDone())
	}
	fmt.Fprintln(out)
	for _, p := range r.problems {
		fmt.Fprintf(out, "    %s\n", p)
	}
}
