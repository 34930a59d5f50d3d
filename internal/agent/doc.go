// Package agent is what runs on a node: it joins once, then tells the control
// plane that the node is there, and renews its certificate, until it is
// stopped or no longer let in.
//
// It needs no inbound port and, once joined, no secret but its own key. Its
// state is one directory, so that a restart of the container or the machine
// goes on with the same identity and without a token.
package agent
