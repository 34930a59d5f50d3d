package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// openCloud is an account that is open. One Provisioner serves all calls of
// an account, since it keeps the account's request limit in mind.
type openCloud struct {
	account Account
	cloud   provision.Provisioner
}

// Sources of a credential.
const (
	SourceStored = "stored"
	SourceEnv    = "env"
)

// AddAccount records an account after its provider has accepted the
// credential.
func (f *Fleet) AddAccount(ctx context.Context, spec AccountSpec) (Account, error) {
	a, err := f.newAccount(spec)
	if err != nil {
		return Account{}, err
	}
	cloud, err := f.cfg.Clouds.Open(ctx, a, spec.Credential)
	if err != nil {
		return Account{}, cloudError(a.Name, err)
	}
	if err := f.probe(ctx, a.Name, cloud); err != nil {
		return Account{}, err
	}
	err = f.store.Update(ctx, func(tx Tx) error { return tx.InsertAccount(ctx, a, spec.Credential) })
	if errors.Is(err, ErrConflict) {
		return Account{}, conflictf("use another name, or remove that account first", "an account named %s exists already", a.Name)
	}
	return a, err
}

func (f *Fleet) newAccount(spec AccountSpec) (Account, error) {
	if spec.Source == "" {
		spec.Source = SourceStored
	}
	if err := checkName("an account", spec.Name); err != nil {
		return Account{}, err
	}
	switch {
	case spec.Provider == "":
		return Account{}, invalidf("name one, such as hetzner", "no provider is named")
	case spec.Source != SourceStored && spec.Source != SourceEnv:
		return Account{}, invalidf("use stored or env", "source %q is not known", clip(spec.Source, 40))
	case spec.Source == SourceStored && strings.TrimSpace(spec.Credential) == "":
		return Account{}, invalidf("give the credential, or use the source env", "account %s has no credential", spec.Name)
	case spec.Source == SourceEnv && spec.Credential != "":
		return Account{}, invalidf("leave the credential out, or use the source stored", "account %s is to be read from the environment, and has a credential", spec.Name)
	}
	return Account{Name: spec.Name, Provider: spec.Provider, Endpoint: spec.Endpoint, Source: spec.Source, CreatedAt: f.now()}, nil
}

// probe makes one call that any working credential may make.
func (f *Fleet) probe(ctx context.Context, account string, cloud provision.Provisioner) error {
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	regions, err := cloud.ListRegions(ctx)
	if err != nil {
		return cloudError(account, err)
	}
	if len(regions) == 0 {
		return &Error{Class: "forbidden", Message: fmt.Sprintf("account %s: the provider shows no region", account), Hint: "check that the credential belongs to the right project and may read it"}
	}
	return nil
}

// Accounts returns all accounts, by name.
func (f *Fleet) Accounts(ctx context.Context) ([]Account, error) { return f.store.Accounts(ctx) }

// CheckAccount asks the provider whether the account's credential works, and,
// where the provider can tell without making anything, whether it may create.
func (f *Fleet) CheckAccount(ctx context.Context, name string) error {
	_, cloud, err := f.open(ctx, name)
	if err != nil {
		return err
	}
	return f.probe(ctx, name, cloud)
}

// RemoveAccount forgets an account and its credential. It is refused while a
// node of the account lives or has a server that was not seen to be gone, and
// while something is recorded as left behind: nobody could remove it then.
func (f *Fleet) RemoveAccount(ctx context.Context, name string) error {
	err := f.store.Update(ctx, func(tx Tx) error {
		if _, err := tx.Account(ctx, name); err != nil {
			return f.accountError(ctx, name, err)
		}
		nodes, err := tx.Nodes(ctx, NodeQuery{Account: name})
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if n.Phase == PhaseDeleted || n.Phase == PhaseFailed && n.ServerGone {
				continue
			}
			return refusedf("delete its nodes first, and wait until they are gone", "account %s is in use: node %s is %s", name, n.Name, n.Phase)
		}
		left, err := tx.Left(ctx, name)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return refusedf("remove it with an audit that deletes", "account %s still has %s %s, left by a failed create", name, left[0].Resource.Kind, left[0].Resource.ID)
		}
		return tx.DeleteAccount(ctx, name)
	})
	if err == nil {
		f.mu.Lock()
		delete(f.clouds, name)
		f.mu.Unlock()
	}
	return err
}

// open returns an account and its Provisioner.
func (f *Fleet) open(ctx context.Context, name string) (Account, provision.Provisioner, error) {
	a, err := f.store.Account(ctx, name)
	if err != nil {
		return Account{}, nil, f.accountError(ctx, name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// An account that was removed and added again is another one.
	if o, ok := f.clouds[name]; ok && o.account.CreatedAt.Equal(a.CreatedAt) && o.account.Provider == a.Provider {
		return a, o.cloud, nil
	}
	credential := ""
	if a.Source != SourceEnv {
		if credential, err = f.store.Credential(ctx, name); err != nil {
			return a, nil, err
		}
	}
	cloud, err := f.cfg.Clouds.Open(ctx, a, credential)
	if err != nil {
		return a, nil, cloudError(name, err)
	}
	f.clouds[name] = openCloud{account: a, cloud: cloud}
	return a, cloud, nil
}

func (f *Fleet) accountError(ctx context.Context, name string, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return notFoundf("list the accounts to see their names, or add one", "there is no account %q", clip(name, 80))
}

type sizesKey struct{ account, region string }

type sizesEntry struct {
	sizes []provision.Size
	at    time.Time
}

// Regions returns where an account can create servers.
func (f *Fleet) Regions(ctx context.Context, account string) ([]provision.Region, error) {
	_, cloud, err := f.open(ctx, account)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	regions, err := cloud.ListRegions(ctx)
	if err != nil {
		return nil, cloudError(account, err)
	}
	return regions, nil
}

// Sizes returns what an account can have in a region, with prices wherever
// the provider publishes them.
func (f *Fleet) Sizes(ctx context.Context, account, region string) ([]provision.Size, error) {
	_, cloud, err := f.open(ctx, account)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timing.CallTimeout)
	defer cancel()
	sizes, err := cloud.ListSizes(ctx, region)
	if err != nil {
		return nil, cloudError(account, err)
	}
	if err := AddPrices(ctx, cloud, region, sizes); err != nil {
		f.log.WarnContext(ctx, "no prices", "account", account, "region", region, "error", err)
	}
	f.mu.Lock()
	f.sizes[sizesKey{account, region}] = sizesEntry{sizes, f.now()}
	f.mu.Unlock()
	return sizes, nil
}

// AddPrices fills in the prices that a provider publishes apart from its
// sizes. A price that cannot be had stays empty.
func AddPrices(ctx context.Context, cloud provision.Provisioner, region string, sizes []provision.Size) error {
	pricer, ok := cloud.(provision.Pricer)
	if !ok {
		return nil
	}
	missing := false
	for _, s := range sizes {
		missing = missing || s.PriceMonthly == ""
	}
	if !missing {
		return nil
	}
	prices, err := pricer.Prices(ctx, region)
	if err != nil {
		return err
	}
	for i, s := range sizes {
		if p, ok := prices[s.ID]; ok && s.PriceMonthly == "" {
			sizes[i].PriceMonthly, sizes[i].Currency = p.Monthly, p.Currency
		}
	}
	return nil
}

// sizesFor is how long a list of sizes is good enough to take a price from.
const sizesFor = time.Hour

// price returns the monthly list price of a candidate; empty when it cannot be
// had now. One list serves all creates of a region for an hour.
func (f *Fleet) price(ctx context.Context, account string, c Candidate) (monthly, currency string) {
	f.mu.Lock()
	e, ok := f.sizes[sizesKey{account, c.Region}]
	f.mu.Unlock()
	sizes := e.sizes
	if !ok || f.now().Sub(e.at) > sizesFor {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		var err error
		if sizes, err = f.Sizes(ctx, account, c.Region); err != nil {
			// A create does not wait for a price; ask again in a while.
			f.mu.Lock()
			f.sizes[sizesKey{account, c.Region}] = sizesEntry{nil, f.now().Add(time.Minute - sizesFor)}
			f.mu.Unlock()
			return "", ""
		}
	}
	for _, s := range sizes {
		if s.ID == c.Size {
			return s.PriceMonthly, s.Currency
		}
	}
	return "", ""
}
