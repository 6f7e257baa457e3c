package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// problemsOf returns the problems in an error.
func problemsOf(err error) Problems {
	var found Problems
	errors.As(err, &found)
	return found
}

func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	for _, problem := range problemsOf(err) {
		got = append(got, problem.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
