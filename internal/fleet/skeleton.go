package fleet

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

var errSoon = errors.New("not written yet")

type openCloud struct{}
type sizesKey struct{}
type sizesEntry struct{}

func validFleetID(s string) bool { return s != "" }

func renderUserData(UserData) (string, error) { return "", errSoon }

func (f *Fleet) CreateNode(ctx context.Context, spec NodeSpec) (Node, error) { return Node{}, errSoon }
func (f *Fleet) PlanNode(ctx context.Context, spec NodeSpec) (Plan, error)   { return Plan{}, errSoon }
func (f *Fleet) Node(ctx context.Context, ref string) (Node, error)          { return Node{}, errSoon }
func (f *Fleet) Nodes(ctx context.Context, q NodeFilter) ([]Node, error)     { return nil, errSoon }
func (f *Fleet) DeleteNode(ctx context.Context, ref string) (Node, error)    { return Node{}, errSoon }
func (f *Fleet) Events(ctx context.Context, ref string) ([]Event, error)     { return nil, errSoon }
func (f *Fleet) Watch(ctx context.Context, after int64, ref string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, errSoon) }
}
func (f *Fleet) AddAccount(ctx context.Context, spec AccountSpec) (Account, error) {
	return Account{}, errSoon
}
func (f *Fleet) Accounts(ctx context.Context) ([]Account, error)      { return nil, errSoon }
func (f *Fleet) CheckAccount(ctx context.Context, name string) error  { return errSoon }
func (f *Fleet) RemoveAccount(ctx context.Context, name string) error { return errSoon }
func (f *Fleet) Regions(ctx context.Context, account string) ([]provision.Region, error) {
	return nil, errSoon
}
func (f *Fleet) Sizes(ctx context.Context, account, region string) ([]provision.Size, error) {
	return nil, errSoon
}
func (f *Fleet) Ticket(ctx context.Context, spec NodeSpec) (JoinTicket, error) {
	return JoinTicket{}, errSoon
}
func (f *Fleet) Audit(ctx context.Context, accounts ...string) (AuditReport, error) {
	return AuditReport{}, errSoon
}
func (f *Fleet) RemoveLeftovers(ctx context.Context, accounts ...string) (AuditReport, error) {
	return AuditReport{}, errSoon
}
func (f *Fleet) Run(ctx context.Context, a Alarm) (next time.Time, err error) {
	return time.Time{}, errSoon
}
func (f *Fleet) Sweep(ctx context.Context, first bool) error { return errSoon }
func (f *Fleet) Patrol(ctx context.Context) error            { return errSoon }
