//go:build race

package fleet_test

// raced: the race detector makes the embedded database some ten times slower.
const raced = true
