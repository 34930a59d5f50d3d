package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-dev/slipway/client"
)

var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// checkName holds a node's name to what every provider takes, before anything
// is asked of one.
func checkName(name string) error {
	if nameRule.MatchString(name) {
		return nil
	}
	hint := "a name is 1 to 63 lower-case letters, digits and hyphens, and begins and ends with a letter or digit"
	if s := wouldDo(name); s != "" {
		hint += "; " + s + " would do"
	}
	return usageError(hint, "%q cannot be a node's name", printable(name))
}

// wouldDo is the name made usable; empty when nothing is left of it.
func wouldDo(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
			return r
		case r == '_' || r == '.' || r == ' ' || r == '/':
			return '-'
		}
		return -1
	}, strings.ToLower(name))
	s = strings.Trim(s, "-")
	if len(s) > 63 {
		s = strings.Trim(s[:63], "-")
	}
	return s
}

// onlyAccount returns the account to use when none is named.
func (a *app) onlyAccount(ctx context.Context, api *client.Client) (string, error) {
	accounts, err := api.Accounts(ctx)
	if err != nil {
		return "", err
	}
	switch len(accounts) {
	case 1:
		return accounts[0].Name, nil
	case 0:
		return "", usageError("register a credential first: `slipway account add hetzner` takes it from HCLOUD_TOKEN", "the control plane has no account yet")
	}
	return "", usageError("name one with --account: "+quoteList(accountNames(accounts)), "there are several accounts")
}

func accountNames(accounts []client.Account) []string {
	var res []string
	for _, acc := range accounts {
		res = append(res, acc.Name)
	}
	return res
}

// explainCreate looks at what was asked for after the control plane or the
// provider found it invalid or not there, and says which word it was and what is
// near. When it finds nothing, err stays as it is.
func (a *app) explainCreate(ctx context.Context, api *client.Client, in client.CreateNode, err error) error {
	if c := client.ClassOf(err); c != client.ClassNotFound && c != client.ClassInvalid || ctx.Err() != nil {
		return err
	}
	if e := a.explainAccount(ctx, api, in.Account, err); e != nil {
		return e
	}
	for _, c := range in.Candidates {
		if e := a.explainPlace(ctx, api, in.Account, c, err); e != nil {
			return e
		}
	}
	return err
}

// unknownWord is the error for a name that is not on a list; it wraps the
// answer that told of it.
func unknownWord(what, word, where string, known []string, list string, cause error) error {
	hint := "`" + list + "` lists them"
	if near := nearest(word, known); len(near) > 0 {
		hint = "did you mean " + quoteList(near) + "? " + hint
	}
	return &exitError{code: ExitNotFound, hint: hint, err: &worded{fmt.Sprintf("there is no %s %q%s", what, printable(word), where), cause}}
}

// worded is an error in better words than its cause.
type worded struct {
	msg string
	err error
}

func (w *worded) Error() string { return w.msg }
func (w *worded) Unwrap() error { return w.err }

func (a *app) explainAccount(ctx context.Context, api *client.Client, account string, cause error) error {
	accounts, err := api.Accounts(ctx)
	if err != nil || contains(accountNames(accounts), account) {
		return nil
	}
	return unknownWord("account", account, "", accountNames(accounts), "slipway account list", cause)
}

func (a *app) explainPlace(ctx context.Context, api *client.Client, account string, c client.Candidate, cause error) error {
	regions, err := api.Regions(ctx, account)
	if err != nil {
		return nil
	}
	if ids := regionIDs(regions); !contains(ids, c.Region) {
		return unknownWord("region", c.Region, " in account "+account, ids, "slipway regions --account "+account, cause)
	}
	sizes, err := api.Sizes(ctx, account, c.Region)
	if err != nil || contains(sizeIDs(sizes), c.Size) {
		return nil
	}
	if others := soldIn(ctx, api, account, c, regions); len(others) > 0 {
		return &exitError{code: ExitNoCapacity, hint: "it is to be had in " + quoteList(others) + "; --candidate region/size names several to try",
			err: &worded{fmt.Sprintf("size %s is not to be had in %s now", printable(c.Size), printable(c.Region)), cause}}
	}
	return unknownWord("size", c.Size, " to be had in "+c.Region, sizeIDs(sizes), "slipway sizes --account "+account+" --region "+c.Region, cause)
}

// soldIn are the other regions that have the size.
func soldIn(ctx context.Context, api *client.Client, account string, c client.Candidate, regions []client.Region) []string {
	var res []string
	for _, r := range regions[:min(len(regions), 12)] {
		if r.ID == c.Region {
			continue
		}
		if sizes, err := api.Sizes(ctx, account, r.ID); err == nil && contains(sizeIDs(sizes), c.Size) {
			res = append(res, r.ID)
		}
	}
	return res
}

// checkPlaces looks, before anything is recorded, whether one of the
// candidates at least can be had. The control plane keeps the list for the
// node's price, so that this asks the provider for nothing more. What cannot
// be found out now is left to the create.
func (a *app) checkPlaces(ctx context.Context, api *client.Client, in client.CreateNode) error {
	known := map[string][]string{}
	for _, c := range in.Candidates {
		ids, ok := known[c.Region]
		if !ok {
			sizes, err := api.Sizes(ctx, in.Account, c.Region)
			switch client.ClassOf(err) {
			case "":
				if err != nil {
					return err
				}
			case client.ClassNotFound, client.ClassInvalid:
			case client.ClassUnauthorized, client.ClassForbidden, client.ClassUnreachable:
				return err
			default:
				return nil
			}
			ids = sizeIDs(sizes)
			known[c.Region] = ids
		}
		if contains(ids, c.Size) {
			return nil
		}
	}
	none := &client.Error{Class: client.ClassNotFound, Message: "none of the candidates can be had"}
	if err := a.explainCreate(ctx, api, in, none); err != error(none) {
		return err
	}
	return nil
}

func regionIDs(list []client.Region) []string {
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

func sizeIDs(list []client.Size) []string {
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	return ids
}
