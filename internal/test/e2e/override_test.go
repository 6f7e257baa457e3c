package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// wantMode waits until a mode of condensing is in force.
func (p *process) wantMode(mode string) {
	p.t.Helper()
	sessiontest.Eventually(p.t, "the mode is "+mode, func() error {
		if got := string(p.administer(http.MethodGet, "/condensing", http.StatusOK)); !strings.Contains(got, fmt.Sprintf(`"in_force":%q`, mode)) {
			return errors.New(got)
		}
		return nil
	})
}

// stored waits until Redis has a setting with this text.
func stored(t *testing.T, redis *sessiontest.Server, text string) {
	t.Helper()
	sessiontest.Eventually(t, "Redis has "+text, func() error {
		if got := redis.Do("HVALS", redis.Do("KEYS", "*settings*")); !strings.Contains(got, text) {
			return fmt.Errorf("it has %s", got)
		}
		return nil
	})
}

// overridden starts two replicas, of which the first is told to switch condensing off.
func overridden(t *testing.T, config string) (p, other *process) {
	t.Helper()
	p, other = serveOperators(t, config), serveOperators(t, config)
	p.administerWith(encode(map[string]string{"mode": "off", "for": "2h", "reason": "incident 12"}), http.MethodPut, "/condensing", http.StatusOK)
	return p, other
}

// TestLostOverrideIsWrittenBack: if Redis loses its data, the replicas that know an override write it back, and say so. It stays in force, and a
// replica that starts afterwards applies it.
func TestLostOverrideIsWrittenBack(t *testing.T) {
	t.Parallel()
	redis := sessiontest.StartRedis(t)
	config := newSetting(t, fakeupstream.Options{}).config(t, inRedis(redis.Addr))
	p, other := overridden(t, config)
	p.wantMode("off")
	other.wantMode("off")
	redis.Do("FLUSHALL")
	stored(t, redis, "incident 12")
	sessiontest.Eventually(t, "a replica says so", func() error {
		if !strings.Contains(p.log.String()+other.log.String(), "the store has lost an override of condensing: it is written back") {
			return errors.New("none does")
		}
		return nil
	})
	serveOperators(t, config).wantMode("off")
	p.wantMode("off")
	for _, p := range []*process{p, other} {
		if strings.Contains(p.log.String(), "an override of condensing has ended") {
			t.Error("the override has ended meanwhile")
		}
	}
}

// TestDeletedOverrideIsNotWrittenBack: a replica that has not heard that an override was deleted does not bring it back, even if Redis has lost
// that as well.
func TestDeletedOverrideIsNotWrittenBack(t *testing.T) {
	t.Parallel()
	redis := sessiontest.StartRedis(t)
	config := newSetting(t, fakeupstream.Options{}).config(t, inRedis(redis.Addr))
	p, other := overridden(t, config)
	other.wantMode("off")
	ok(t, other.command.Process.Signal(syscall.SIGSTOP))
	p.administer(http.MethodDelete, "/condensing", http.StatusNoContent)
	p.wantMode("on")
	redis.Do("FLUSHALL")
	stored(t, redis, `"mode":""`) // p knows that it was deleted
	ok(t, other.command.Process.Signal(syscall.SIGCONT))
	other.awaitLine("an override of condensing has ended")
	other.wantMode("on")
	p.wantMode("on")
	serveOperators(t, config).wantMode("on")

	p.administerWith(encode(map[string]string{"mode": "observe", "for": "2h"}), http.MethodPut, "/condensing", http.StatusOK) // it can be set again
	other.wantMode("observe")
}
