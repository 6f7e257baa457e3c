package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestImage is the part of scripts/image.sh ('make image') that tests the built image. DEWPOINT_TEST_IMAGE names a program that
// runs the image's entry point as its user, with its environment and a read-only root.
func TestImage(t *testing.T) {
	launcher := os.Getenv("DEWPOINT_TEST_IMAGE")
	if launcher == "" {
		t.Skip("SKIPPED: make image builds an image and runs this test with it")
	}
	s := newSetting(t, fakeupstream.Options{})
	t.Setenv("IMAGE_ENV", "DEWPOINT_LISTEN=127.0.0.1:0 DEWPOINT_ADMIN_LISTEN=127.0.0.1:0 "+
		"DEWPOINT_SHUTDOWN_DELAY=0s DEWPOINT_UPSTREAM_BASE_URL="+s.url)
	binary = launcher
	p := serve(t)
	run := demo.Sample()
	first := send(t, p, body(run.Messages[:2]))
	ok(t, first.finish())
	streamed, hold := s.holding(t, p, run.Messages[:4])
	close(hold)
	wantWhole(t, streamed)
	oneThread(t, []place{placeOf(exchange{}, first.Response), placeOf(exchange{Step: 1}, streamed.Response)})
	sessiontest.Eventually(t, "it has started", func() error { return p.probe("/startupz", http.StatusOK, "") })
	if got := command(t, "health", "--admin", p.Admin); got.Code != 0 {
		t.Errorf("health: %+v", got)
	}
	wantUser(t, p, "65532")
	p.terminate()
	wantExit(t, p, 0)
	if got := command(t, "health", "--admin", p.Admin); got.Code != 1 {
		t.Errorf("health of a proxy that is gone: %+v", got)
	}
	if got := command(t, "--store", "/elsewhere.db"); got.Code == 0 {
		t.Errorf("the root is not read-only: %+v", got)
	}
}

// wantUser checks the user of a process, and logs its memory use.
func wantUser(t testing.TB, p *process, uid string) {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.command.Process.Pid), "status"))
	ok(t, err)
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		values := strings.Fields(rest)
		switch name {
		case "Uid", "Gid":
			if !slices.Equal(values, []string{uid, uid, uid, uid}) {
				t.Errorf("%s %v, want %s", name, values, uid)
			}
		case "VmRSS":
			t.Log("memory after two requests:", rest)
		}
	}
}
