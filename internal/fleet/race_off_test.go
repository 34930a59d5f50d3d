//go:build !race

package fleet_test

const raced = false
