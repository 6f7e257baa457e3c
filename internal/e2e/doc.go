// Package e2e runs the real binary as its users do: as processes of its own that are killed, restarted and put side by
// side, spoken to by real clients, with the strict fake upstream in the test's process to judge what comes out of them.
//
// What a test needs from outside (redis-server, node, npm, python3 and their package registries) must be there; a test
// that lacks a program fails and says which; a registry that cannot be reached is a skip. DEWPOINT_TEST_NO_REDIS=1 and
// DEWPOINT_TEST_NO_CLIENTS=1 allow tests to go on without. GOFLAGS=-race builds the binary with the race detector too.
package e2e
