// Package property runs property tests whose cases can be repeated.
package property

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// seedVariable is the environment variable with the seed of all property tests. 0 draws a new one for each test.
const seedVariable = "SEED"

// defaultSeed makes a plain 'go test' repeatable, too.
const defaultSeed = 20

// Check tests a property with cases drawn from the seed in the environment variable SEED, 20 if it is unset. The flag -rapid.seed has
// precedence, but go test does not cache results of runs with flags that it does not know. Check may be called by parallel tests.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if err := setSeed(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, property)
}

// setSeed sets rapid's seed, once. It reads the variable while a test runs and not when the package is initialised: only then go test
// knows that a cached result depends on it.
var setSeed = sync.OnceValue(func() error {
	const name = "rapid.seed"
	seed, given := os.LookupEnv(seedVariable)
	if !given {
		seed = strconv.Itoa(defaultSeed)
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == name {
			seed = f.Value.String()
		}
	})
	return flag.Set(name, seed)
})
