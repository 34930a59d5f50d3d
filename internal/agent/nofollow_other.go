//go:build !unix

package agent

// noFollow does nothing where the system has no such flag.
const noFollow = 0
