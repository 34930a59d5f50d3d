package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

// fleetClouds opens providers for the fleet's accounts.
type fleetClouds struct {
	fleetID string
	opts    provision.Options
	getenv  func(string) string
}

// Open implements fleet.Clouds. An account whose credential is not stored is
// read from this process's environment anew each time.
func (c fleetClouds) Open(_ context.Context, a fleet.Account, credential string) (provision.Provisioner, error) {
	if _, err := providerInfo(a.Provider); err != nil {
		return nil, err
	}
	if credential == "" {
		var err error
		if credential, _, err = credentialFromEnv(a.Provider, c.getenv); err != nil {
			return nil, err
		}
	}
	o := c.opts
	o.Endpoint = a.Endpoint
	o.Labels = map[string]string{shortName + "-fleet": c.fleetID}
	return provision.Open(a.Provider, credential, o)
}

// directClouds reaches the clouds without a control plane, with credentials
// from the environment.
type directClouds struct {
	getenv func(string) string
}

// Providers implements cli.Clouds.
func (c directClouds) Providers() []cli.Provider {
	var ps []cli.Provider
	for _, p := range offered() {
		ps = append(ps, cli.Provider{
			Name: p.Name, Title: p.Title, Credential: p.Credential, CredentialEnv: p.CredentialEnv,
			EndpointEnv: p.EndpointEnv, UserDataLimit: p.UserDataLimit,
		})
	}
	return ps
}

// Credential implements cli.Clouds.
func (c directClouds) Credential(provider string) (credential, source string, err error) {
	if credential, source, err = credentialFromEnv(provider, c.getenv); err != nil {
		return "", "", asClientError(provider, err)
	}
	return credential, source, nil
}

// Regions implements cli.Clouds.
func (c directClouds) Regions(ctx context.Context, provider string) ([]client.Region, error) {
	p, err := c.open(provider)
	if err != nil {
		return nil, asClientError(provider, err)
	}
	regions, err := p.ListRegions(ctx)
	if err != nil {
		return nil, asClientError(provider, err)
	}
	return api.WireRegions(regions), nil
}

// Sizes implements cli.Clouds.
func (c directClouds) Sizes(ctx context.Context, provider, region string) ([]client.Size, error) {
	p, err := c.open(provider)
	if err != nil {
		return nil, asClientError(provider, err)
	}
	sizes, err := p.ListSizes(ctx, region)
	if err == nil {
		err = fleet.AddPrices(ctx, p, region, sizes)
	}
	if err != nil {
		return nil, asClientError(provider, err)
	}
	return api.WireSizes(sizes), nil
}

// CheckCredential implements cli.Clouds.
func (c directClouds) CheckCredential(ctx context.Context, provider string) error {
	p, err := c.open(provider)
	if err != nil {
		return asClientError(provider, err)
	}
	// The one call that any working credential may make.
	if _, err := p.ListRegions(ctx); err != nil {
		return asClientError(provider, err)
	}
	return nil
}

func (c directClouds) open(provider string) (provision.Provisioner, error) {
	credential, _, err := credentialFromEnv(provider, c.getenv)
	if err != nil {
		return nil, err
	}
	info, err := providerInfo(provider)
	if err != nil {
		return nil, err
	}
	o := provision.Options{ShortName: shortName}
	if info.EndpointEnv != "" {
		o.Endpoint = c.getenv(info.EndpointEnv)
	}
	return provision.Open(provider, credential, o)
}

// offered are the providers that this program offers: those of the library
// that a simulated cloud has judged.
func offered() []provision.ProviderInfo {
	var ps []provision.ProviderInfo
	for _, p := range provision.Providers() {
		if slices.ContainsFunc(demoPlaces(), func(d demoPlace) bool { return d.provider == p.Name }) {
			ps = append(ps, p)
		}
	}
	return ps
}

func providerInfo(name string) (provision.ProviderInfo, error) {
	var names []string
	for _, p := range offered() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return provision.ProviderInfo{}, fmt.Errorf("%w: there is no provider %q; this build has %s", provision.ErrInvalid, name, strings.Join(names, ", "))
}

// asClientError words a provider's failure the way the API does, so that one
// place prints it and picks the exit code.
func asClientError(provider string, err error) error {
	if ce := (*client.Error)(nil); errors.As(err, &ce) {
		return ce
	}
	p := api.ProblemOf(err)
	if p.Provider == "" {
		p.Provider = provider
	}
	return client.NewError(p)
}
