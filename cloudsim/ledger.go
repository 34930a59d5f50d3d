package cloudsim

import (
	"fmt"
	"sort"
	"strconv"
	"time"
)

// LedgerEntry is one billable thing, from its making to its end.
type LedgerEntry struct {
	Provider  string    `json:"provider"`
	Project   string    `json:"project"` // a short hash of the credential
	Kind      string    `json:"kind"`    // server, public-ip, volume
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Server    string    `json:"server,omitempty"` // the id of the server that it serves
	CreatedAt time.Time `json:"created_at"`
	// DeletedAt is zero while the thing exists.
	DeletedAt time.Time `json:"deleted_at,omitzero"`
	// Hourly is its price an hour, in Currency.
	Hourly   float64 `json:"hourly"`
	Currency string  `json:"currency"`
}

// Left tells whether the thing still exists.
func (e LedgerEntry) Left() bool { return e.DeletedAt.IsZero() }

// LedgerSummary is the ledger in figures.
type LedgerSummary struct {
	Made int `json:"made"`
	Left int `json:"left"`
	// Cost is by currency, with two decimals, of every hour begun, as
	// providers bill.
	Cost map[string]string `json:"cost"`
}

// enter opens an entry. s.mu must be held.
func (w *world) enter(e LedgerEntry) *LedgerEntry {
	w.ledger = append(w.ledger, &e)
	return &e
}

// Ledger returns every billable thing ever made, oldest first.
func (s *Sim) Ledger() []LedgerEntry {
	var out []LedgerEntry
	s.locked(func(time.Time) {
		for _, e := range s.world.ledger {
			out = append(out, *e)
		}
	})
	sort.SliceStable(out, func(i, j int) bool { return out[i].CreatedAt.Before(out[j].CreatedAt) })
	return out
}

// LedgerSummary returns the ledger in figures, as of now.
func (s *Sim) LedgerSummary() LedgerSummary {
	sum := LedgerSummary{Cost: map[string]string{}}
	cost := map[string]float64{}
	s.locked(func(now time.Time) {
		for _, e := range s.world.ledger {
			sum.Made++
			end := e.DeletedAt
			if e.Left() {
				sum.Left++
				end = now
			}
			hours := int(end.Sub(e.CreatedAt)/time.Hour) + 1
			cost[e.Currency] += float64(hours) * e.Hourly
		}
	})
	for c, v := range cost {
		sum.Cost[c] = fmt.Sprintf("%.2f", v)
	}
	return sum
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
