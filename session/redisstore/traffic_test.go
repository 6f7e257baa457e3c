package redisstore

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// traffic is what a step costs: round trips, commands (including those inside scripts), and bytes to the server and back.
type traffic struct{ trips, commands, in, out int }

func (a traffic) String() string {
	return fmt.Sprintf("%d round trips, %d commands, %d bytes there, %d back", a.trips, a.commands, a.in, a.out)
}

// line is an agent's run that uses a server whose traffic is counted.
type line struct {
	t      testing.TB
	server *sessiontest.Server
	name   string
	store  *sessions
	*session.Registry
	count *trips
}

func newLine(t testing.TB, server *sessiontest.Server, name string) *line {
	t.Helper()
	s := start(t, Options{Addrs: []string{server.Addr}, TTL: 720 * time.Hour, Timeout: 10 * time.Second})
	l := &line{t: t, server: server, name: name, store: s, Registry: newReplica(t, s).registry, count: &trips{}}
	s.under.client.AddHook(l.count)
	return l
}

// elsewhere continues the run in another process that has just started.
func (l *line) elsewhere() *line {
	other := newLine(l.t, l.server, l.name)
	must(l.t, other.store.Ping(l.t.Context())) // opens the connection
	return other
}

// query returns the run's history of n messages: a task, followed by tool calls with their results.
func (l *line) query(n int, key string) session.Query {
	scope := session.Scope{Tenant: "acme", Key: key}
	messages := make([]session.Message, n)
	for i := range messages {
		raw := fmt.Sprintf(`{"role":"tool","content":"%s %d %s"}`, l.name, i, strings.Repeat("output ", 60))
		m := session.Message{Kind: session.Observation, Raw: []byte(raw), Digest: sha256.Sum256([]byte(raw))}
		switch {
		case i == 0:
			m.Kind = session.User
		case i%2 == 1:
			m.Kind, m.Calls = session.Action, []string{fmt.Sprintf("call_%s_%06d", l.name, i)}
		}
		messages[i] = m
	}
	seed := session.Secret("secret").Seed(scope)
	text := strings.Repeat("a line of the task that is long enough to leave a trace\n", 3)
	return session.Query{
		Scope: scope, Purpose: session.PurposeMain, History: session.NewHistory(seed, messages),
		Texts: func() []string { return []string{text} },
	}
}

// cost returns the traffic of work.
func (l *line) cost(work func()) traffic {
	l.t.Helper()
	l.server.Do("CONFIG", "RESETSTAT")
	before := l.count.n.Load()
	work()
	a := traffic{trips: int(l.count.n.Load() - before)}
	info := l.server.Do("INFO", "everything")
	for _, m := range regexp.MustCompile(`(?m)^cmdstat_(\S+?):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		if n, _ := strconv.Atoi(m[2]); m[1] != "info" && m[1] != "config|resetstat" && m[1] != "hello" {
			a.commands += n
		}
	}
	for name, to := range map[string]*int{"input": &a.in, "output": &a.out} {
		m := regexp.MustCompile(`total_net_` + name + `_bytes:(\d+)`).FindStringSubmatch(info)
		*to, _ = strconv.Atoi(m[1])
	}
	return a
}

// step serves a request of n messages. It returns what the request waits for, and what is done in the background.
func (l *line) step(q session.Query) (res session.Resolution, before, after traffic) {
	l.t.Helper()
	ctx := l.t.Context()
	before = l.cost(func() {
		var err error
		res, err = l.Resolve(ctx, q)
		must(l.t, err)
		must(l.t, second(l.Condensations(ctx, &res)))
	})
	found := res
	after = l.cost(func() {
		must(l.t, l.Append(ctx, &res, tallyOf(&res, q)))
		must(l.t, l.Answered(ctx, &res, "", []string{fmt.Sprintf("call_%s_%06d", l.name, q.History.Len())}, nil))
	})
	return found, before, after
}

// atMost compares round trips and commands exactly, so that savings are not lost, and bytes roughly.
func atMost(t *testing.T, what string, got, want traffic) {
	t.Helper()
	t.Logf("%s: %v", what, got)
	if got.trips != want.trips || got.commands != want.commands {
		t.Errorf("%s: %v; want %d round trips and %d commands", what, got, want.trips, want.commands)
	}
	if got.in > want.in || got.out > want.out {
		t.Errorf("%s: %v; want at most %d and %d bytes", what, got, want.in, want.out)
	}
}

// TestTraffic pins the traffic of each kind of request.
func TestTraffic(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t, "--appendonly", "no")
	warm := newLine(t, server, "warm") // loads the scripts into the server
	warm.step(warm.query(1, ""))

	l := newLine(t, server, "run")
	must(t, l.store.Ping(t.Context()))
	for _, key := range []string{"", "key"} {
		what := "key " + strconv.Quote(key) + ": "
		_, before, after := l.step(l.query(1, key))
		atMost(t, what+"first request, before", before, traffic{trips: 2, commands: 3, in: 600, out: 100})
		begins := traffic{trips: 2, commands: 22, in: 1800, out: 100}
		if key != "" {
			begins.commands++ // the key's trace
		}
		atMost(t, what+"first request, after", after, begins)
		l.step(l.query(3, key))
		for _, n := range []int{5, 7} {
			commands := 19
			if n == 7 {
				commands += 2 // the place of the third position is deleted
			}
			res, before, after := l.step(l.query(n, key))
			atMost(t, what+"step, before", before, traffic{trips: 1, commands: 2, in: 600, out: 700})
			atMost(t, what+"step, after", after, traffic{trips: 2, commands: commands, in: 2200, out: 100})
			if res.Match != session.MatchEnd || res.Logged != n-2 {
				t.Errorf("%d messages: %v at %d", n, res.Match, res.Logged)
			}
		}
		res, before, after := l.step(l.query(7, key))
		if after.trips != 1 {
			t.Errorf("what is logged is logged again: %v", after)
		}
		atMost(t, what+"the same again", before, traffic{trips: 1, commands: 2, in: 600, out: 900})
		if !res.Again {
			t.Error("the same again is not known as such")
		}
	}
}

// TestTrafficOfGrowth: a step of a long session costs no more than one of a short session.
func TestTrafficOfGrowth(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	server := sessiontest.StartRedis(t, "--appendonly", "no")
	sizes := []int{101, 2005, 5013} // as far from a position that stays indexed
	var steps [][2]traffic
	for _, n := range sizes {
		l := newLine(t, server, fmt.Sprint("run", n))
		must(t, l.store.Ping(t.Context()))
		for before := 12; before > 0; before -= 2 { // until each step deletes as many recent traces as it leaves
			l.step(l.query(n-before, ""))
		}
		_, before, after := l.step(l.query(n, ""))
		steps = append(steps, [2]traffic{before, after})
	}
	for i, n := range sizes {
		for j, what := range []string{"before", "after"} {
			short, long := steps[0][j], steps[i][j]
			t.Logf("%d messages, %s: %v", n, what, long)
			if long.trips != short.trips || long.commands != short.commands {
				t.Errorf("%d messages, %s: %v; with %d: %v", n, what, long, sizes[0], short)
			}
			if long.in > short.in+100 || long.out > short.out+100 { // numbers with more digits
				t.Errorf("%d messages, %s: %v; with %d: %v", n, what, long, sizes[0], short)
			}
		}
	}
}

// TestTrafficOfLongHistories: the traffic of resolving a long history that this process has not seen.
func TestTrafficOfLongHistories(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t, "--appendonly", "no")
	warm := newLine(t, server, "warm")
	warm.step(warm.query(2001, ""))
	for _, n := range []int{301, 2001} {
		l := newLine(t, server, fmt.Sprint("run", n))
		must(t, l.store.Ping(t.Context()))
		_, before, after := l.step(l.query(n, ""))
		atMost(t, fmt.Sprint(n, " messages, first seen, before"), before, traffic{trips: 2, commands: 3, in: 20_000, out: 2500})
		t.Logf("%d messages, first seen, after: %v", n, after)
		if after.trips > 3 {
			t.Errorf("%d messages are logged in %d round trips", n, after.trips)
		}
		cold := l.elsewhere()
		res, before, _ := cold.step(cold.query(n+2, ""))
		atMost(t, fmt.Sprint(n, " messages, cold replica"), before, traffic{trips: 1, commands: 2, in: 1400, out: 2000})
		if res.Match != session.MatchEnd || res.Logged != n {
			t.Errorf("%v at %d", res.Match, res.Logged)
		}
		view := session.Project(l.query(n, "").History, nil)
		q := l.query(n+2, "")
		must(t, second(l.Condense(t.Context(), &res, &view, session.Condensation{
			Prefix: n - 10, Hash: q.History.Chain[n-10], Forgotten: []session.Range{{From: 2, To: n - 9}}, Offset: 2, Summary: "SUMMARY", SummaryTokens: 1,
		})))
		cold = l.elsewhere()
		_, before, _ = cold.step(cold.query(n+4, ""))
		atMost(t, fmt.Sprint(n, " messages, cold replica, condensed"), before, traffic{trips: 2, commands: 3, in: 1500, out: 2700})
	}
}
