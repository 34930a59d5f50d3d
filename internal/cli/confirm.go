package cli

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something that cannot be undone. what lists it. Where
// nobody can answer, it refuses unless yes was given.
func (a *app) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	if !a.IO.CanAsk() {
		return refusedError("add --yes to do it without being asked", "this needs a yes, and there is no terminal to ask on")
	}
	fmt.Fprint(a.IO.Err, what)
	fmt.Fprint(a.IO.Err, paint(a.IO.ErrColor, styleBold, "Go on? [y/N] "))
	line, err := bufio.NewReader(a.IO.In).ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(a.IO.Err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return refusedError("", "not confirmed; nothing was done")
}
