// Package archtest holds the tests that keep the shape of this repository:
// which package may import which, how long a file may be, and that each
// package says what it is for. It has no code of its own.
package archtest
