// Package quick marks tests that take seconds of processor time.
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
