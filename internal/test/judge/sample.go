package judge

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// RunsVariable is the environment variable with the recorded runs that tests play: files and folders, separated by spaces.
const RunsVariable = "DEWPOINT_RUNS"

// strideVariable is the environment variable that samples recorded runs, and combinations of settings in which tests play them: 9 selects
// every ninth.
const strideVariable = "RUNS_STRIDE"

// Recorded loads the selected runs of RunsVariable. It returns none if the variable is not set.
func Recorded() (runs []replay.Run, err error) {
	paths, err := replay.Paths(strings.Fields(os.Getenv(RunsVariable)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RunsVariable, err)
	}
	for i, path := range paths {
		if !Selected(i) {
			continue
		}
		run, err := replay.Load(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", RunsVariable, err)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// Selected reports whether the nth combination, counted from 0, is played.
func Selected(n int) bool { return n%stride() == 0 }

// Sampled reports whether some combinations are left out.
func Sampled() bool { return stride() > 1 }

func stride() int {
	n, err := strconv.Atoi(os.Getenv(strideVariable))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
