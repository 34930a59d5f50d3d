package provisiontest

import (
	"context"
	"errors"
	"testing"

	"github.com/slipway-dev/slipway/provision"
)

var getClauses = []clause{
	{"OfNoServerIsNotFound", func(t *testing.T, a *Account) {
		_, _, err := a.Provisioner.GetServer(callContext(t), a.MissingID)
		a.wantClass(t, "get of a server that does not exist", err, provision.ErrNotFound)
	}},
	{"OfADeletedServerIsNotFound", func(t *testing.T, a *Account) {
		id, _ := a.create(t, a.opts("node-1"))
		a.delete(t, id) // waits for ErrNotFound
	}},
	{"OfAMalformedIDIsInvalid", func(t *testing.T, a *Account) {
		for _, id := range []string{a.MalformedID, "", "../regions", "a?b=c", "a#b"} {
			_, _, err := a.Provisioner.GetServer(callContext(t), id)
			a.wantClass(t, "get of "+id, err, provision.ErrInvalid)
		}
	}},
}

var deleteClauses = []clause{
	{"LeavesNothing", func(t *testing.T, a *Account) {
		id, _ := a.create(t, a.opts("node-1"))
		a.running(t, id)
		a.delete(t, id)
		a.wantNothingLeft(t)
	}},
	{"OfAServerThatStillBootsWorks", func(t *testing.T, a *Account) {
		id, _ := a.create(t, a.opts("node-1"))
		a.delete(t, id)
		a.wantNothingLeft(t)
	}},
	{"OfNoServerIsNoError", func(t *testing.T, a *Account) {
		if err := a.Provisioner.DeleteServer(callContext(t), a.MissingID); err != nil {
			t.Error(err)
		}
	}},
	{"TwiceIsNoError", func(t *testing.T, a *Account) {
		id, _ := a.create(t, a.opts("node-1"))
		for range 2 {
			if err := a.Provisioner.DeleteServer(callContext(t), id); err != nil {
				t.Fatal(err)
			}
		}
		a.gone(t, id)
		if err := a.Provisioner.DeleteServer(callContext(t), id); err != nil {
			t.Errorf("delete of a server that is gone: %v", err)
		}
	}},
	{"OfAMalformedIDIsInvalidAndNotSuccess", func(t *testing.T, a *Account) {
		for _, id := range []string{a.MalformedID, "", "../regions"} {
			a.wantClass(t, "delete of "+id, a.Provisioner.DeleteServer(callContext(t), id), provision.ErrInvalid)
		}
	}},
	{"LeavesOtherServersAlone", func(t *testing.T, a *Account) {
		one, _ := a.create(t, a.opts("node-1"))
		opts := a.opts("node-2")
		opts.AllowSSHInbound = true
		two, _ := a.create(t, opts)
		a.delete(t, one)
		a.running(t, two)
		a.wantServers(t, two)
	}},
	{"FreesTheName", func(t *testing.T, a *Account) {
		opts := a.opts("node-1")
		id, _ := a.create(t, opts)
		a.delete(t, id)
		opts.IdempotencyKey = "the second of its name"
		if again, _ := a.create(t, opts); again == id {
			t.Errorf("the new server has the id of the old one, %s", id)
		}
	}},
	{"DoesNothingWhenItsContextHasEnded", func(t *testing.T, a *Account) {
		id, _ := a.create(t, a.opts("node-1"))
		ctx, cancel := context.WithCancel(callContext(t))
		cancel()
		err := a.Provisioner.DeleteServer(ctx, id)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is not the context's: %v", err)
		}
		a.wantClass(t, "delete with an ended context", err, provision.ErrUnavailable)
		a.wantServers(t, id)
	}},
}
