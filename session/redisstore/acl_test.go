package redisstore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// allowed returns the commands that an ACL line allows.
func allowed(line string) []string {
	var commands []string
	for _, word := range strings.Fields(line) {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	slices.Sort(commands)
	return commands
}

// used returns the commands that a server has run since its statistics were reset, except those of the test and those that
// every new connection sends.
func used(server *sessiontest.Server) []string {
	var commands []string
	for _, m := range regexp.MustCompile(`(?m)^cmdstat_(\S+?):calls=`).FindAllStringSubmatch(server.Do("INFO", "commandstats"), -1) {
		if !slices.Contains([]string{"info", "config|resetstat", "hello", "auth", "acl|log"}, m[1]) {
			commands = append(commands, m[1])
		}
	}
	return commands
}

// exercise calls every method of a store. None may fail.
func exercise(t *testing.T, s *sessions) {
	t.Helper()
	ctx := t.Context()
	must(t, s.Ping(ctx))
	must(t, second(s.Secret(ctx, session.Secret("secret"))))
	must(t, s.Append(ctx, twoEvents("t", 0)))
	fork := twoEvents("fork", 2)
	fork.Thread.Parent, fork.Thread.ForkAt, fork.Key, fork.Thread.Tenant = "t", 2, "key", "acme"
	must(t, s.Append(ctx, fork))
	must(t, s.Append(ctx, twoEvents("t", 2)))
	c, err := s.Condense(ctx, "t", session.Condensation{Summary: "x"})
	must(t, err)
	must(t, s.Prepare(ctx, "t", session.Condensation{Summary: "x"}))
	must(t, second(s.Summary(ctx, c.ID)))
	must(t, second(s.Find(ctx, []session.Hash{{1}, {2}}, "t")))
	must(t, second(s.Thread(ctx, "t")))
	must(t, second(s.Events(ctx, "t", 1, 10)))
	must(t, second(s.Trace(ctx, []session.Hash{{9}})))
	must(t, s.Mark(ctx, session.Place{Thread: "t"}, session.Traces{Lasting: []session.Hash{{9}}}))
	must(t, second(s.Answers(ctx, "t")))
	must(t, second(s.Session(ctx, "s")))
	must(t, s.Enter(ctx, session.Entry{Experiment: "a", Sums: session.Sums{Nano: 1}}))
	must(t, second(s.Experiment(ctx, "a")))
	entry := session.JournalEntry{Session: "s", Name: session.Hash{7}, Value: []byte("x")}
	must(t, s.WriteJournal(ctx, session.JournalBatch{Writer: "w", Number: 1, Entries: []session.JournalEntry{entry}, Totals: []session.Total{{Period: "d", Row: "r", Values: []int64{1}}}}))
	must(t, second(s.ReadJournal(ctx, "s", 0, 1)))
	must(t, second(s.FindJournal(ctx, session.Hash{7})))
	must(t, second(s.Totals(ctx, "d")))
	told := session.Notice{Tenant: "acme", Thread: "t", Made: time.Now()}
	must(t, second(s.Enqueue(ctx, told, 1)))
	must(t, second(s.Enqueue(ctx, session.Notice{Tenant: "acme", Thread: "u", Made: time.Now()}, 1)))
	_, _, err = s.Enqueued(ctx, "acme", 0, 1)
	must(t, err)
	must(t, s.Dequeue(ctx, told))
	lease, err := s.Lock(ctx, "t", time.Minute)
	must(t, err)
	lease.Release()
	charges := []session.Charge{{Account: session.Account{Tenant: "acme", Name: "x", Until: time.Now()}, Limit: 9, Amount: 1}}
	must(t, second(s.Reserve(ctx, "id", charges)))
	must(t, s.Settle(ctx, "id", charges))
	for i := range session.MaxThreads + session.MaxThreads/4 + 10 {
		must(t, s.Append(ctx, twoEvents(session.ThreadID("of-many-"+strconv.Itoa(i)), 0)))
	}
	doomed := twoEvents("doomed", 0)
	doomed.Thread.Session = "doomed"
	must(t, s.Append(ctx, doomed))
	must(t, s.Request(ctx, "doomed", time.Now()))
	trims := store.Part{Key: store.Key{Kind: 's', Group: "s", Logs: "u"}, Trim: []store.Trim{{Log: 'u', Keep: 1}}} // as after hundreds of expired threads
	must(t, second(s.under.Commit(ctx, store.Commit{Parts: []store.Part{trims}})))
	must(t, s.Save(ctx, "t", session.Savings{Tokens: 1 << 55}))
	must(t, s.Set(ctx, "a", []byte("x")))
	must(t, s.Set(ctx, "a", nil))
	must(t, second(s.Settings(ctx)))
	must(t, second(s.under.Draw(ctx, "b", 1, 10, false)))
	must(t, second(s.Sessions(ctx, session.SessionQuery{Limit: 1})))
	Hasten(s.under)
	must(t, s.Forget(ctx, "doomed"))
}

// TestLeastPermissions: the documented user has exactly the permissions that the store needs. No call is refused, every
// allowed command is used, and every other command and key is refused.
func TestLeastPermissions(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	line := aclLines(t)["standalone"]
	server := sessiontest.StartRedis(t, WithACL(t, "standalone")...)
	s := start(t, Options{Addrs: []string{server.Addr}, Username: "dewpoint", Password: ACLPassword, TTL: time.Hour, Timeout: 10 * time.Second})
	server.Do("CONFIG", "RESETSTAT")
	exercise(t, s)
	server.Do("SCRIPT", "FLUSH")
	must(t, s.Append(t.Context(), twoEvents("t", 4)))
	if log := server.Do("ACL", "LOG"); log != "" {
		t.Errorf("refused:\n%s", log)
	}
	got := slices.DeleteFunc(used(server), func(c string) bool { return c == "script|flush" })
	if want := allowed(line); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("used    %q\nallowed %q", slices.Sorted(slices.Values(got)), want)
	}
	for command, arity := range commandsOf(server) {
		if slices.Contains(allowed(line), command) {
			continue
		}
		for _, filler := range []string{"1", "dp:x"} { // for arguments that must be a number, or a key
			args := append([]string{"ACL", "DRYRUN", "dewpoint"}, strings.Split(command, "|")...)
			for len(args)-3 < max(arity, -arity) {
				args = append(args, filler)
			}
			if answer, err := sessiontest.Command(server.Addr, args...); err == nil && answer == "OK" && !open(command) {
				t.Errorf("%s is allowed", command)
			}
		}
	}
	for key, want := range map[string]bool{"dp:secret": true, "dp:c:x": true, "other:x": false, "xdp:": false, "": false} {
		if answer := server.Do("ACL", "DRYRUN", "dewpoint", "GET", key); (answer == "OK") != want {
			t.Errorf("the key %q: %s", key, answer)
		}
	}
}

// open are the commands that an ACL cannot forbid.
func open(command string) bool {
	return slices.Contains([]string{"auth", "hello", "quit", "reset"}, command)
}

// commandsOf returns a server's commands, including subcommands, with the number of their arguments.
func commandsOf(server *sessiontest.Server) map[string]int {
	commands := map[string]int{}
	// The name and the arity of a command are on two consecutive lines before its flags.
	lines := strings.Split(server.Do("COMMAND"), "\n")
	for i := range len(lines) - 1 {
		if arity, err := strconv.Atoi(lines[i+1]); err == nil && regexp.MustCompile(`^[a-z][a-z_|-]*$`).MatchString(lines[i]) && arity != 0 {
			commands[lines[i]] = arity
		}
	}
	return commands
}

// TestCommandsAreKnown makes sure that TestLeastPermissions does not pass because it knows no commands.
func TestCommandsAreKnown(t *testing.T) {
	t.Parallel()
	commands := commandsOf(sessiontest.StartRedis(t))
	for name, arity := range map[string]int{"get": 2, "flushall": -1, "config|set": -4, "keys": 2, "eval": -3} {
		if commands[name] != arity {
			t.Errorf("%s has %d arguments, want %d; all: %q", name, commands[name], arity, slices.Sorted(maps.Keys(commands)))
		}
	}
}

// TestLeastPermissionsInACluster tests the user for a Cluster.
func TestLeastPermissionsInACluster(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	line := aclLines(t)["cluster"]
	cluster := sessiontest.StartCluster(t, WithACL(t, "cluster")...)
	s := start(t, Options{Addrs: cluster.Addrs(), Cluster: true, Username: "dewpoint", Password: ACLPassword, TTL: time.Hour, Timeout: 10 * time.Second})
	for _, node := range cluster.Nodes {
		node.Do("CONFIG", "RESETSTAT")
	}
	exercise(t, s)
	move := cluster.MoveSlot(s.thread("t"))
	move.Key(s.thread("t"))
	must(t, second(s.Thread(t.Context(), "t"))) // ASK
	move.End()
	all := map[string]bool{}
	for _, node := range cluster.Nodes {
		if log := node.Do("ACL", "LOG"); log != "" {
			t.Errorf("refused:\n%s", log)
		}
		for _, command := range used(node) {
			all[command] = true
		}
	}
	maps.DeleteFunc(all, func(c string, _ bool) bool { // those of the test, and those that the nodes send each other
		return strings.HasPrefix(c, "cluster|") && c != "cluster|slots" || slices.Contains([]string{"migrate", "select", "restore", "restore-asking"}, c)
	})
	if got, want := slices.Sorted(maps.Keys(all)), allowed(line); !slices.Equal(got, want) {
		t.Errorf("used    %q\nallowed %q", got, want)
	}
}

// TestLeastPermissionsOfSentinels tests the user of the Sentinels, who is not the user of the master.
func TestLeastPermissionsOfSentinels(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	lines := aclLines(t)
	master := sessiontest.StartRedis(t, WithACL(t, "standalone")...)
	sentinel := sessiontest.StartSentinel(t, "main", master, 1, lines["sentinel"])
	s := start(t, Options{
		Addrs: []string{sentinel.Addr}, MasterName: "main", Username: "dewpoint", Password: ACLPassword,
		SentinelUsername: "dewpoint", SentinelPassword: ACLPassword, Timeout: 5 * time.Second,
	})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	for _, server := range []*sessiontest.Server{master, sentinel} {
		if log := server.Do("ACL", "LOG"); log != "" {
			t.Errorf("refused:\n%s", log)
		}
	}
	for _, command := range allowed(lines["sentinel"]) {
		if command == "ping" { // from an idle subscription
			continue
		}
		sentinel.Do("ACL", "SETUSER", "dewpoint", "-"+command)
		without := start(t, s.under.options)
		_ = without.Ping(t.Context()) // does not need what Sentinels know about each other
		sessiontest.Eventually(t, command+" is missed", func() error {
			if log := sentinel.Do("ACL", "LOG"); !strings.Contains(log, command) {
				return fmt.Errorf("refused was %q", log)
			}
			return nil
		})
		sentinel.Do("ACL", "SETUSER", "dewpoint", "+"+command)
		sentinel.Do("ACL", "LOG", "RESET")
	}
	wrong := s.under.options
	wrong.SentinelPassword = "battery-staple"
	err := start(t, wrong).Ping(t.Context())
	unavailable(t, err)
	if strings.Contains(fmt.Sprint(err), wrong.SentinelPassword) {
		t.Errorf("the error contains the password: %v", err)
	}
}
