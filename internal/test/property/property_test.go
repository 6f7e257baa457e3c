package property

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCasesFollowTheSeed runs the test binary again with different seeds, since a process sets its seed once.
func TestCasesFollowTheSeed(t *testing.T) {
	draws := regexp.MustCompile(`(?m)drew (\d+)`)
	run := func(seed string, flags ...string) []string {
		t.Helper()
		child := exec.Command(os.Args[0], append([]string{"-test.run=^TestDraw$", "-test.v"}, flags...)...)
		child.Env = append(os.Environ(), "PROPERTY_TEST_DRAW=1", seedVariable+"="+seed)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return draws.FindAllString(string(out), -1)
	}
	first := run("7")
	if len(first) < 50 || !slices.Equal(run("7"), first) {
		t.Errorf("the same seed draws different cases: %d of them", len(first))
	}
	if slices.Equal(run("8"), first) {
		t.Error("different seeds draw the same cases")
	}
	if !slices.Equal(run("8", "-rapid.seed=7"), first) {
		t.Error("the flag -rapid.seed is ignored")
	}
	if slices.Equal(run("0"), run("0")) {
		t.Error("seed 0 does not draw new cases each time")
	}
}

// TestDraw prints the cases that Check draws, for TestCasesFollowTheSeed.
func TestDraw(t *testing.T) {
	if os.Getenv("PROPERTY_TEST_DRAW") == "" {
		return
	}
	Check(t, func(r *rapid.T) { t.Log("drew", rapid.Uint64().Draw(r, "n")) })
}
