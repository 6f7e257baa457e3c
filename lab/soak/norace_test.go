//go:build !race

package soak

// raceFlag builds the binary as this test is built.
const raceFlag = "-race=false"
