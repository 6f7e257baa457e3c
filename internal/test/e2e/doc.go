// Package e2e runs the real binary as users do: as processes that are killed, restarted and run next to each other, with real
// clients in front of them, and the strict fake upstream in the test's process to check the requests that they forward.
//
// External programs (redis-server, and for the slow tests node, npm and python3) must be installed; a test that lacks one fails and
// names it. A test is skipped if a package registry cannot be reached. DEWPOINT_TEST_NO_REDIS=1 and DEWPOINT_TEST_NO_CLIENTS=1 skip the tests
// that need Redis or clients. GOFLAGS=-race also builds the binary with the race detector.
package e2e
