package fleet_test

import (
	"fmt"
	"testing"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
	"github.com/slipway-dev/slipway/internal/fleet"
)

// TestRegistry holds the fleet, on its real store, to what enroll asks of a
// registry: for machines that come with a ticket, and for servers that boot.
func TestRegistry(t *testing.T) {
	ways := map[string]func(t *testing.T, w *world, name string) (fleet.Node, enroll.Token){
		"ticket": func(t *testing.T, w *world, name string) (fleet.Node, enroll.Token) {
			ticket, err := w.fleet.Ticket(w.ctx, fleet.NodeSpec{Name: name, JoinTimeout: enrolltest.TokenLife})
			if err != nil {
				t.Fatal(err)
			}
			tok, err := enroll.ParseToken(ticket.Token)
			if err != nil {
				t.Fatal(err)
			}
			return ticket.Node, tok
		},
		"server": func(t *testing.T, w *world, name string) (fleet.Node, enroll.Token) {
			s := spec(name)
			s.JoinTimeout = enrolltest.TokenLife
			n := w.create(s)
			w.tick()
			tok, err := w.cloud.servers[len(w.cloud.servers)-1].token()
			if err != nil {
				t.Fatal(err)
			}
			return n, tok
		},
	}
	for way, issue := range ways {
		t.Run(way, func(t *testing.T) {
			enrolltest.Run(t, func(t *testing.T) enrolltest.Harness {
				w := testWorld(t)
				w.joins = false
				count := 0
				return enrolltest.Harness{
					Registry: w.fleet,
					Advance:  w.clock.advance,
					Issue: func(t *testing.T) (string, string, enroll.Token) {
						count++
						n, tok := issue(t, w, fmt.Sprintf("node-%d", count))
						return n.ID, n.Name, tok
					},
					Revoke: func(t *testing.T, nodeID string) {
						if _, err := w.fleet.DeleteNode(w.ctx, nodeID); err != nil {
							t.Fatal(err)
						}
					},
				}
			})
		})
	}
}
