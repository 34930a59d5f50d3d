package provision_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-dev/slipway/provision"
	"github.com/slipway-dev/slipway/provision/provisiontest"
)

func TestHetznerConformance(t *testing.T) {
	provisiontest.Run(t, provisiontest.Harness{Open: openFake, Around: synctest.Test})
}

func openFake(t *testing.T) *provisiontest.Account {
	f := newFakeHetzner()
	reopen := func(t *testing.T) provision.Provisioner { return openHetzner(t, f, goodToken) }
	once := func(fl fault) func() { return func() { f.fault("POST /servers", fl) } }
	return &provisiontest.Account{
		Provisioner: reopen(t), Reopen: reopen,
		Intruder: openHetzner(t, f, badToken), ReadOnly: openHetzner(t, f, readOnlyToken),
		Region: "fsn1", Size: "cx23", OtherSize: "cax11", MissingID: "999999999", UserDataLimit: 32 << 10,
		Secrets:      []string{goodToken, badToken, readOnlyToken},
		Settle:       func() { time.Sleep(30 * time.Second) }, // of the bubble's time
		Billable:     f.billable,
		SSHReachable: f.sshReachable,
		Faults: provisiontest.Faults{
			LoseCreate:  once(fault{after: true}),
			BreakCreate: once(fault{status: 502}),
			NoCapacity:  once(fault{status: 412, code: "resource_unavailable"}),
			NoQuota:     once(fault{status: 403, code: "resource_limit_exceeded"}),
			Throttle:    once(fault{status: 429, code: "rate_limit_exceeded"}),
		},
	}
}

func openHetzner(t *testing.T, f http.RoundTripper, token string) *provision.Hetzner {
	t.Helper()
	p, err := provision.Open("hetzner", token, provision.Options{HTTPClient: &http.Client{Transport: f}, ShortName: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*provision.Hetzner)
}

func (f *fakeHetzner) billable() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tick()
	var left []string
	for _, table := range []string{"servers", "primary_ips", "volumes"} {
		for _, o := range f.tables[table] {
			left = append(left, fmt.Sprintf("%s %d", table, o["id"]))
		}
	}
	return left
}

func (f *fakeHetzner) sshReachable(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	applied := f.find("servers", id)["public_net"].(object)["firewalls"].([]object)
	for _, a := range applied {
		text, _ := json.Marshal(f.find("firewalls", strconv.FormatInt(a["id"].(int64), 10))["rules"])
		if strings.Contains(string(text), `"port":"22"`) {
			return true
		}
	}
	return len(applied) == 0
}

// fingerprint is MD5 over the key, in hex pairs, as ssh-keygen -E md5 prints it.
func fingerprint(key string) string {
	blob, _ := base64.StdEncoding.DecodeString(strings.Fields(key)[1])
	sum := md5.Sum(blob)
	text := hex.EncodeToString(sum[:])
	var pairs []string
	for i := 0; i < len(text); i += 2 {
		pairs = append(pairs, text[i:i+2])
	}
	return strings.Join(pairs, ":")
}
