package fleet

import (
	"context"
	"fmt"
)

// Ticket records a node for a machine that we do not make, and returns what
// that machine needs to join. The token is in the answer and nowhere else.
func (f *Fleet) Ticket(ctx context.Context, spec NodeSpec) (JoinTicket, error) {
	if spec.Account != "" || len(spec.Candidates) > 0 {
		return JoinTicket{}, invalidf("create a node instead", "a ticket is for a machine that exists already: it takes no account, region or size")
	}
	if err := checkName("a node", spec.Name); err != nil {
		return JoinTicket{}, err
	}
	if err := checkCommon(spec); err != nil {
		return JoinTicket{}, err
	}
	n := f.newNode(spec)
	n.Phase, n.Attempt = PhaseBooting, 1
	n.Boot = f.boot()
	err := f.store.Update(ctx, func(tx Tx) error {
		if err := tx.InsertNode(ctx, n); err != nil {
			return nameError(n.Name, err)
		}
		if err := tx.PutToken(ctx, f.tokenRecord(n)); err != nil {
			return err
		}
		message := fmt.Sprintf("a ticket was made for a machine to join by itself until %s", n.JoinBy.Format("2006-01-02 15:04:05 MST"))
		if err := f.event(ctx, tx, n, "requested", message); err != nil {
			return err
		}
		return tx.Wake(ctx, Alarm{AlarmNode, n.ID}, n.JoinBy)
	})
	if err != nil {
		return JoinTicket{}, err
	}
	return JoinTicket{
		Node: n, Address: n.Boot.Address, Token: f.token(n).Reveal(),
		CAFingerprint: n.Boot.CAFingerprint, AgentImage: f.cfg.AgentImage,
	}, nil
}
