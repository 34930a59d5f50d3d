package storetest

import (
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/provision"
)

func testEvents(t *testing.T, s fleet.Store, _ func() time.Time) {
	one, two := node(1), node(2)
	insert(t, s, one, two)
	var want []fleet.Event
	for i := range 6 {
		e := fleet.Event{NodeID: one.ID, Node: one.Name, At: base.Add(time.Duration(i)), Type: "t", Phase: fleet.PhaseBooting, Message: "it's a \"message\"\n"}
		e.At = e.At.Truncate(time.Microsecond)
		if i%2 == 1 {
			e.NodeID, e.Node = two.ID, two.Name
		}
		want = append(want, e)
		update(t, s, func(tx fleet.Tx) error { return tx.AddEvent(t.Context(), e) })
	}
	all, err := s.Events(t.Context(), "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if i > 0 && all[i].Seq <= all[i-1].Seq {
			t.Fatalf("sequence numbers do not rise: %d after %d", all[i].Seq, all[i-1].Seq)
		}
		if i < len(want) {
			want[i].Seq = all[i].Seq
		}
	}
	diff(t, all, want)
	page, err := s.Events(t.Context(), "", all[1].Seq, 2)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, page, want[2:4])
	own, err := s.Events(t.Context(), two.ID, all[1].Seq, 0)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, own, []fleet.Event{want[3], want[5]})
}

func testEventsChanged(t *testing.T, s fleet.Store, _ func() time.Time) {
	n := node(1)
	changed := s.EventsChanged()
	insert(t, s, n)
	select {
	case <-changed:
		t.Fatal("told of events when there was none")
	default:
	}
	update(t, s, func(tx fleet.Tx) error { return tx.AddEvent(t.Context(), fleet.Event{NodeID: n.ID, At: base}) })
	select {
	case <-changed:
	case <-t.Context().Done():
	case <-time.After(10 * time.Second):
		t.Fatal("not told of an event")
	}
	select {
	case <-s.EventsChanged():
		t.Fatal("a channel that was asked for later is closed already")
	default:
	}
}

func testTokens(t *testing.T, s fleet.Store, _ func() time.Time) {
	n, other := node(1), node(2)
	insert(t, s, n, other)
	want := fleet.TokenRecord{ID: "abc", NodeID: n.ID, Attempt: 1, SecretHash: [32]byte{1, 2, 31: 9}, State: fleet.TokenLive, CreatedAt: base, ExpiresAt: base.Add(time.Hour)}
	used := fleet.TokenRecord{ID: "used", NodeID: n.ID, State: fleet.TokenUsed, KeyHash: "k", UsedAt: base, MisusedAt: base.Add(time.Second)}
	foreign := fleet.TokenRecord{ID: "foreign", NodeID: other.ID, State: fleet.TokenLive}
	update(t, s, func(tx fleet.Tx) error {
		for _, k := range []fleet.TokenRecord{want, used, foreign, want} {
			if err := tx.PutToken(t.Context(), k); err != nil {
				return err
			}
		}
		return nil
	})
	get := func(id string) fleet.TokenRecord {
		t.Helper()
		k, err := s.Token(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	diff(t, get("abc"), want)
	diff(t, get("used"), used)
	killed := 0
	update(t, s, func(tx fleet.Tx) (err error) { killed, err = tx.KillTokens(t.Context(), n.ID); return err })
	want.State = fleet.TokenDead
	diff(t, killed, 1)
	diff(t, get("abc"), want)
	diff(t, get("used"), used)
	diff(t, get("foreign"), foreign)
}

func testAccounts(t *testing.T, s fleet.Store, _ func() time.Time) {
	stored := fleet.Account{Name: "b-stored", Provider: "hetzner", Endpoint: "http://127.0.0.1:1/v1", Source: "stored", CreatedAt: base}
	env := fleet.Account{Name: "a-env", Provider: "aws", Source: "env", CreatedAt: base}
	update(t, s, func(tx fleet.Tx) error {
		if err := tx.InsertAccount(t.Context(), stored, "s3cret\n{\"json\":1}"); err != nil {
			return err
		}
		return tx.InsertAccount(t.Context(), env, "")
	})
	err := s.Update(t.Context(), func(tx fleet.Tx) error { return tx.InsertAccount(t.Context(), stored, "x") })
	wantErr(t, err, fleet.ErrConflict)
	update(t, s, func(tx fleet.Tx) error {
		return tx.SetAccountHealth(t.Context(), "a-env", "no way", base.Add(time.Hour))
	})
	env.LastError, env.ObservedAt = "no way", base.Add(time.Hour)
	all, err := s.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, all, []fleet.Account{env, stored})
	for name, want := range map[string]string{"b-stored": "s3cret\n{\"json\":1}", "a-env": ""} {
		got, err := s.Credential(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, got, want)
	}
	update(t, s, func(tx fleet.Tx) error { return tx.DeleteAccount(t.Context(), "b-stored") })
	_, err = s.Account(t.Context(), "b-stored")
	wantErr(t, err, fleet.ErrNotFound)
	_, err = s.Credential(t.Context(), "b-stored")
	wantErr(t, err, fleet.ErrNotFound)
	err = s.Update(t.Context(), func(tx fleet.Tx) error { return tx.DeleteAccount(t.Context(), "b-stored") })
	wantErr(t, err, fleet.ErrNotFound)
	err = s.Update(t.Context(), func(tx fleet.Tx) error { return tx.SetAccountHealth(t.Context(), "b-stored", "", base) })
	wantErr(t, err, fleet.ErrNotFound)
}

func testLeft(t *testing.T, s fleet.Store, _ func() time.Time) {
	one := fleet.Left{Account: "a", NodeID: "n", At: base, Resource: provision.Resource{
		Kind: provision.KindPublicIP, ID: "7", Name: "ip", Region: "fsn1", ServerID: "s", CreatedAt: base, Labels: map[string]string{"k": "v"}, Billable: true,
	}}
	two := fleet.Left{Account: "b", NodeID: "n", At: base.Add(time.Second), Resource: provision.Resource{Kind: provision.KindVolume, ID: "7"}}
	update(t, s, func(tx fleet.Tx) error {
		for _, l := range []fleet.Left{one, two, one} {
			if err := tx.PutLeft(t.Context(), l); err != nil {
				return err
			}
		}
		return nil
	})
	for account, want := range map[string][]fleet.Left{"": {one, two}, "a": {one}, "b": {two}, "c": nil} {
		got, err := s.Left(t.Context(), account)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, got, want)
	}
	update(t, s, func(tx fleet.Tx) error { return tx.DropLeft(t.Context(), one) })
	update(t, s, func(tx fleet.Tx) error { return tx.DropLeft(t.Context(), one) })
	got, err := s.Left(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	diff(t, got, []fleet.Left{two})
}

func testAlarms(t *testing.T, s fleet.Store, now func() time.Time) {
	a, same := fleet.Alarm{Kind: fleet.AlarmNode, ID: "x"}, fleet.Alarm{Kind: fleet.AlarmAccount, ID: "x"}
	start := now().UTC().Truncate(time.Microsecond)
	wake := func(a fleet.Alarm, in time.Duration) {
		t.Helper()
		update(t, s, func(tx fleet.Tx) error { return tx.Wake(t.Context(), a, start.Add(in)) })
	}
	want := func(what string, in time.Duration) {
		t.Helper()
		got, err := s.Alarms(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !got[a].Equal(start.Add(in)) {
			t.Fatalf("%s: the alarm is set for %s from the start; want %s", what, got[a].Sub(start), in)
		}
	}
	wake(a, time.Hour)
	want("set", time.Hour)
	wake(a, 2*time.Hour)
	want("an earlier one is kept", time.Hour)
	wake(a, 30*time.Minute)
	want("a later one is replaced", 30*time.Minute)
	wake(a, -time.Hour)
	want("one in the past is due at once", -time.Hour)
	wake(a, time.Hour)
	want("one that was due is replaced", time.Hour)
	wake(same, time.Minute)
	want("another kind is another alarm", time.Hour)
}
