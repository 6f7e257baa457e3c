package soak

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// noRedis names the environment variable that lets tests pass where no redis-server is installed.
const noRedis = "DEWPOINT_TEST_NO_REDIS"

// build makes the binary to be soaked.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dewpoint")
	out, err := exec.Command("go", "build", raceFlag, "-o", path, "github.com/dewpoint-proxy/dewpoint/cmd/proxy").CombinedOutput()
	if err != nil {
		t.Fatalf("the binary does not build: %v\n%s", err, out)
	}
	return path
}

// TestSoak is a short soak of each store. How requests and faults meet is up to the machine; that nothing is violated is
// not.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("SLOW: make full runs it")
	}
	binary := build(t)
	for name, o := range map[string]Options{
		"redis": {
			Store: Redis, Replicas: 2, Sessions: 30, Steps: 14, Duration: 7 * time.Second, Seed: 8,
		},
		"embedded": {Store: Embedded, Replicas: 1, Sessions: 20, Steps: 12, Duration: 5 * time.Second, Seed: 9},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("redis-server"); o.Store == Redis && err != nil && os.Getenv(noRedis) == "1" {
				t.Skipf("NOT TESTED: redis-server is not installed, and %s=1 allows to go on without it", noRedis)
			}
			o.Dewpoint, o.Progress = binary, io.Discard
			report, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range report.Violations {
				t.Errorf("seed %d: %s", o.Seed, v)
			}
			checkSoaked(t, report, o)
		})
	}
}

// checkSoaked checks that a soak did what it is for.
func checkSoaked(t *testing.T, r *Report, o Options) {
	t.Helper()
	if r.Violated != len(r.Violations) && r.Violated < mostViolations {
		t.Errorf("%d violations counted, %d told", r.Violated, len(r.Violations))
	}
	want := map[string]string{"replica killed": groupInjected, string(roughUpstream): groupInjected, endServed.how: groupEnded,
		"summaries forwarded": groupChecked, "marks in summaries": groupChecked, "views made again from the log": groupChecked}
	if o.Store == Redis {
		want["redis killed"], want["redis stopped"] = groupInjected, groupInjected
	}
	for name, group := range want {
		if r.tally.of(group, name) == 0 {
			t.Errorf("%s: no %s", group, name)
		}
	}
	lines := r.tally.sum(groupLines, "")
	if compared := r.tally.of(groupChecked, "logs compared, message by message"); compared < lines || lines < o.Sessions {
		t.Errorf("%d logs compared of %d lines", compared, lines)
	}
	var tables strings.Builder
	r.Markdown(&tables)
	if !strings.Contains(tables.String(), "| **violations** | **0** |") {
		t.Errorf("the report says:\n%s", &tables)
	}
}
