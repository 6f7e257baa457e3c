// Package quick marks tests that take seconds of processor time, so that not every target runs them.
package quick

import (
	"os"
	"testing"
)

// variable is the environment variable with which 'make quick' leaves out the tests that call Skip.
const variable = "QUICK"

// Skip skips a test if the environment variable QUICK is set. 'make check' runs it.
func Skip(t testing.TB) {
	t.Helper()
	if os.Getenv(variable) != "" {
		t.Skip("SLOW: make check runs it")
	}
}

// Alone skips a test if the race detector is on, which would find nothing in it and makes it take ten times as long, or cannot run it.
// 'make test' runs it.
func Alone(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("SLOW: make test runs it, without the race detector")
	}
}
