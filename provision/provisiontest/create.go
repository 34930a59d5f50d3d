package provisiontest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

var createClauses = []clause{
	{"ReturnsAnIDThatGetKnowsAtOnce", func(t *testing.T, a *Account) {
		id, _ := a.create(t, a.opts("node-1"))
		status, _, err := a.Provisioner.GetServer(callContext(t), id)
		if err != nil || status != provision.ServerStatusPending && status != provision.ServerStatusRunning {
			t.Errorf("GetServer right after the create: status %q, error %v", status, err)
		}
	}},
	{"LeadsToARunningServerWithAnAddress", func(t *testing.T, a *Account) {
		id, early := a.create(t, a.opts("node-1"))
		if ip := a.running(t, id); early != "" && ip != early {
			t.Errorf("address was %s at the create and is %s", early, ip)
		}
	}},
	{"WithoutKeyIsACreateOfItsOwn", func(t *testing.T, a *Account) {
		one, two := a.opts("node-1"), a.opts("node-2")
		one.IdempotencyKey, two.IdempotencyKey = "", ""
		id1, _ := a.create(t, one)
		id2, _ := a.create(t, two)
		if id1 == id2 {
			t.Errorf("two creates without key gave one server, %s", id1)
		}
		a.wantServers(t, id1, id2)
	}},
	{"RefusesABadNameAndSuggestsOne", func(t *testing.T, a *Account) {
		for _, name := range []string{"", "under_score", "-edge", "sp ace", "new\nline", strings.Repeat("x", 300)} {
			_, _, err := a.Provisioner.CreateServer(callContext(t), a.opts(name))
			a.wantClass(t, "create of "+strings.ReplaceAll(name, "\n", `\n`), err, provision.ErrInvalid)
		}
		a.wantNothingLeft(t)
	}},
	{"RefusesUserDataThatCloudInitWouldIgnore", func(t *testing.T, a *Account) {
		for what, data := range map[string]string{
			"a byte-order mark": "\ufeff#cloud-config\n",
			"carriage returns":  "#cloud-config\r\n",
		} {
			opts := a.opts("node-1")
			opts.UserData = data
			_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
			a.wantClass(t, "user-data with "+what, err, provision.ErrInvalid)
		}
		a.wantNothingLeft(t)
	}},
	{"RefusesUserDataOverTheLimit", func(t *testing.T, a *Account) {
		need(t, "UserDataLimit", a.UserDataLimit > 0)
		opts := a.opts("node-1")
		opts.UserData = "#cloud-config\n"
		opts.UserData += strings.Repeat("#", a.UserDataLimit-len(opts.UserData))
		id, _ := a.create(t, opts)
		opts.Name, opts.IdempotencyKey = "node-2", "another"
		opts.UserData += "#"
		_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		a.wantClass(t, "user-data of one byte too many", err, provision.ErrInvalid)
		a.wantServers(t, id)
	}},
	{"RefusesLabelsThatHideItsOwn", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		opts.Labels = map[string]string{"managed-by": "somebody"}
		_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		a.wantClass(t, "create with the label managed-by", err, provision.ErrInvalid)
	}},
	{"RefusesAnUnknownSizeOrRegion", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		opts.Size = "no-such-size"
		_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		a.wantClass(t, "create of an unknown size", err, provision.ErrInvalid, provision.ErrNotFound)
		opts = a.opts("node-1")
		opts.Region = "nowhere-1"
		_, _, err = a.Provisioner.CreateServer(callContext(t), opts)
		a.wantClass(t, "create in an unknown region", err, provision.ErrInvalid, provision.ErrNotFound)
		a.wantNothingLeft(t)
	}},
	{"RefusesAnArchitectureThatTheSizeHasNot", func(t *testing.T, a *Account) {
		size, ok := a.sizes(t, a.Region)[a.Size]
		if !ok || size.Architecture == "" {
			t.Skip("the size does not say its architecture")
		}
		opts := a.opts("node-1")
		opts.Architecture = map[string]string{"x86": "arm", "arm": "x86"}[size.Architecture]
		_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		a.wantClass(t, "create with the wrong architecture", err, provision.ErrInvalid)
		opts.Architecture = size.Architecture
		a.create(t, opts)
	}},
	{"MakesNothingWhenItsContextHasEnded", func(t *testing.T, a *Account) {
		ctx, cancel := context.WithCancel(callContext(t))
		cancel()
		_, _, err := a.Provisioner.CreateServer(ctx, a.opts("node-1"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is not the context's: %v", err)
		}
		a.wantClass(t, "create with an ended context", err, provision.ErrUnavailable)
		a.wantNothingLeft(t)
	}},
}

var sshClauses = []clause{
	{"IsClosedUnlessAskedFor", func(t *testing.T, a *Account) {
		need(t, "SSHReachable", a.SSHReachable != nil)
		id, _ := a.create(t, a.opts("node-1"))
		if a.SSHReachable(id) {
			t.Error("port 22 can be reached right after the create")
		}
		a.running(t, id)
		if a.SSHReachable(id) {
			t.Error("port 22 can be reached")
		}
	}},
	{"IsOpenWhenAskedForAndOnlyThere", func(t *testing.T, a *Account) {
		need(t, "SSHReachable", a.SSHReachable != nil)
		closed, _ := a.create(t, a.opts("node-1"))
		opts := a.opts("node-2")
		opts.AllowSSHInbound = true
		open, _ := a.create(t, opts)
		a.running(t, open)
		if !a.SSHReachable(open) {
			t.Error("port 22 cannot be reached where it was asked for")
		}
		if a.SSHReachable(closed) {
			t.Error("port 22 can be reached at the other server")
		}
	}},
	{"GoesAwayWithItsServer", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		opts.AllowSSHInbound = true
		opts.SSHSourceCIDRs = []string{"198.51.100.0/24"}
		id, _ := a.create(t, opts)
		a.delete(t, id)
		a.wantNothingLeft(t)
	}},
	{"GoesAwayWithItsServerInAnotherProcess", func(t *testing.T, a *Account) {
		need(t, "Reopen", a.Reopen != nil)
		opts := a.opts("node-1")
		opts.AllowSSHInbound = true
		id, _ := a.create(t, opts)
		a.Provisioner = a.Reopen(t)
		a.delete(t, id)
		a.wantNothingLeft(t)
	}},
	{"LeavesNothingWhenTheCreateFails", func(t *testing.T, a *Account) {
		need(t, "Faults.NoCapacity", a.Faults.NoCapacity != nil)
		opts := a.opts("node-1")
		opts.AllowSSHInbound = true
		a.Faults.NoCapacity()
		_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
		a.wantClass(t, "create without capacity", err, provision.ErrCapacity)
		a.wantNothingLeft(t)
	}},
	{"RefusesASourceThatIsNoNetwork", func(t *testing.T, a *Account) {
		for _, cidr := range []string{"198.51.100.7", "198.51.100.7/24", "everywhere", ""} {
			opts := a.opts("node-1")
			opts.AllowSSHInbound = true
			opts.SSHSourceCIDRs = []string{cidr}
			_, _, err := a.Provisioner.CreateServer(callContext(t), opts)
			a.wantClass(t, "SSH from "+cidr, err, provision.ErrInvalid)
		}
		a.wantNothingLeft(t)
	}},
}
