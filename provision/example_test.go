package provision_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/slipway-dev/slipway/provision"
)

// client stands for a provider's API in these examples.
func client() *http.Client { return &http.Client{Transport: newFakeHetzner()} }

func Example() {
	ctx := context.Background()
	p, err := provision.Open("hetzner", goodToken, provision.Options{ShortName: "acme", HTTPClient: client()})
	if err != nil {
		log.Fatal(err)
	}
	id, ip, err := p.CreateServer(ctx, provision.CreateOpts{
		Region: "fsn1", Size: "cx23", Name: "node-1",
		UserData:       "#cloud-config\nruncmd: [[echo, hello]]\n",
		IdempotencyKey: "node-1/attempt-1", // kept before the call
	})
	if err != nil {
		log.Fatal(err)
	}
	status, _, err := p.GetServer(ctx, id)
	fmt.Println(status, ip, err)
	// Output: pending 203.0.113.1 <nil>
}

func ExampleOpen() {
	_, err := provision.Open("hetzner", "", provision.Options{})
	fmt.Println(err)
	var e *provision.ProviderError
	if errors.As(err, &e) {
		fmt.Println(e.Hint)
	}
	// Output:
	// hetzner: open: credential not accepted: the credential is empty
	// put an API token of the project into HCLOUD_TOKEN
}

// What to do next depends on the class of an error alone.
func ExampleClassName() {
	p, err := provision.Open("hetzner", goodToken, provision.Options{HTTPClient: client()})
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = p.CreateServer(context.Background(), provision.CreateOpts{Region: "fsn1", Size: "cx23", Name: "my_node"})
	switch {
	case errors.Is(err, provision.ErrCapacity):
		fmt.Println("try the next size or region")
	case errors.Is(err, provision.ErrUnavailable), errors.Is(err, provision.ErrRateLimited):
		fmt.Println("repeat later, with the same key")
	default:
		fmt.Println(provision.ClassName(err))
		fmt.Println(err)
	}
	// Output:
	// invalid
	// hetzner: create server: invalid request: name "my_node": a name is made of letters, digits, hyphens and dots, at most 63 between dots, with a letter or digit at each end; "my-node" would do
}

// One list shows all servers of a fleet, whatever their number.
func ExampleLister() {
	ctx := context.Background()
	p, err := provision.Open("hetzner", goodToken, provision.Options{HTTPClient: client()})
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"node-1", "node-2"} {
		if _, _, err := p.CreateServer(ctx, provision.CreateOpts{Region: "fsn1", Size: "cx23", Name: name}); err != nil {
			log.Fatal(err)
		}
	}
	servers, err := p.(provision.Lister).ListServers(ctx)
	for _, s := range servers {
		fmt.Println(s.Name, s.Status, s.Region, s.Size)
	}
	fmt.Println(err)
	// Output:
	// node-1 pending fsn1 cx23
	// node-2 pending fsn1 cx23
	// <nil>
}

// The audit shows everything that was ever made under a short name.
func ExampleAuditor() {
	ctx := context.Background()
	p, err := provision.Open("hetzner", goodToken, provision.Options{HTTPClient: client()})
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = p.CreateServer(ctx, provision.CreateOpts{Region: "fsn1", Size: "cx23", Name: "node-1", AllowSSHInbound: true})
	if err != nil {
		log.Fatal(err)
	}
	resources, err := p.(provision.Auditor).ListResources(ctx)
	for _, r := range resources {
		if !r.Shared {
			fmt.Println(r.Kind, "billable:", r.Billable)
		}
	}
	fmt.Println(err)
	// Output:
	// server billable: true
	// public-ip billable: true
	// firewall billable: false
	// <nil>
}
