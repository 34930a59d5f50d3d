package cloudsim

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"
)

// Effect is what a fault does.
type Effect string

// The effects of faults.
const (
	// EffectStatus answers with Status, Code and Message; nothing happens.
	EffectStatus Effect = "status"
	// EffectDropBefore cuts the connection before anything happens.
	EffectDropBefore Effect = "drop-before"
	// EffectDropAfter does the call and cuts the connection instead of
	// answering.
	EffectDropAfter Effect = "drop-after"
	// EffectDelay does the call after Delay of real time.
	EffectDelay Effect = "delay"
	// EffectDelayAnswer does the call at once and answers after Delay of real
	// time.
	EffectDelayAnswer Effect = "delay-answer"
	// EffectCapacity, EffectQuota and EffectRateLimit answer as the provider
	// does when it has no such machine, when the account's limit is reached,
	// and when there were too many requests.
	EffectCapacity  Effect = "capacity"
	EffectQuota     Effect = "quota"
	EffectRateLimit Effect = "rate-limit"
	// EffectUnauthorized answers as to a wrong credential.
	EffectUnauthorized Effect = "unauthorized"
	// EffectSlowBoot makes a server that is created boot later by Delay of
	// simulated time.
	EffectSlowBoot Effect = "slow-boot"
	// EffectNoBoot makes a server that never gets as far as cloud-init.
	EffectNoBoot Effect = "no-boot"
	// EffectBootDies makes a server that is switched off in the middle of its
	// first boot.
	EffectBootDies Effect = "boot-dies"
	// EffectStuckDelete takes a delete that then does not end within Delay of
	// simulated time.
	EffectStuckDelete Effect = "stuck-delete"
	// EffectListLag keeps a server out of lists for Delay of simulated time.
	EffectListLag Effect = "list-lag"
	// EffectLateFailure accepts a create of a server and gives it up after
	// Delay of simulated time, with Code and Message: without a code, for lack
	// of capacity. Of the providers that can do so.
	EffectLateFailure Effect = "late-failure"
	// EffectLeaveBehind makes a provider's own clean-up forget something: Call
	// and Match say what, as "delete public ip".
	EffectLeaveBehind Effect = "leave-behind"
)

// bootEffects are those that mark a server rather than change an answer.
var bootEffects = []Effect{EffectSlowBoot, EffectNoBoot, EffectBootDies, EffectStuckDelete, EffectListLag, EffectLateFailure}

// endEffects are those on what ends by itself.
var endEffects = []Effect{EffectLeaveBehind}

var answerEffects = []Effect{
	EffectStatus, EffectDropBefore, EffectDropAfter, EffectDelay, EffectDelayAnswer,
	EffectCapacity, EffectQuota, EffectRateLimit, EffectUnauthorized,
}

// Fault is a rule by which something goes wrong.
type Fault struct {
	ID int `json:"id"` // given by AddFault
	// Provider limits the rule to one provider; empty is all.
	Provider string `json:"provider,omitempty"`
	// Call is which call goes wrong, as in the log of requests: "create
	// server"; "*" or a pattern as in path.Match. The effects on boots and
	// deletes apply to servers made by "create server" and need none.
	Call string `json:"call,omitempty"`
	// Match limits the rule to things of that name; a pattern as in path.Match.
	Match string `json:"match,omitempty"`
	// Skip is how many matching calls go well first.
	Skip int `json:"skip,omitempty"`
	// Times is how many go wrong; 0 is every one.
	Times  int    `json:"times,omitempty"`
	Effect Effect `json:"effect"`
	// Status, Code and Message are for EffectStatus.
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Delay is for the effects that take one. In JSON it is text, as "1m30s".
	Delay Duration `json:"delay,omitempty"`
	// Hits is how often the rule was used.
	Hits int `json:"hits"`
}

// Duration is a time.Duration that is text in JSON.
type Duration time.Duration

// MarshalText writes it as "1m30s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

type fault struct{ Fault }

// AddFault adds a rule and returns its id. Of several that match, the oldest
// counts.
func (s *Sim) AddFault(f Fault) (int, error) {
	if err := f.validate(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextRule++
	f.ID, f.Hits = s.nextRule, 0
	s.faults = append(s.faults, &fault{f})
	return f.ID, nil
}

// Faults returns the rules with how often each was used.
func (s *Sim) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, 0, len(s.faults))
	for _, f := range s.faults {
		out = append(out, f.Fault)
	}
	return out
}

// ClearFaults removes all rules.
func (s *Sim) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (f Fault) validate() error {
	if !slices.Contains(slices.Concat(answerEffects, bootEffects, endEffects), f.Effect) {
		return fmt.Errorf("effect %s: there is %v, %v and %v", strconv.Quote(string(f.Effect)), answerEffects, bootEffects, endEffects)
	}
	for name, p := range map[string]string{"call": f.Call, "match": f.Match} {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%s %s is not a pattern", name, strconv.Quote(p))
		}
	}
	switch {
	case slices.Contains(answerEffects, f.Effect) && f.Call == "":
		return fmt.Errorf(`effect %s needs a call, as "create server" or "*"`, f.Effect)
	case f.Effect == EffectStatus && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("effect status needs a status from 400 to 599")
	case f.Delay < 0 || f.Skip < 0 || f.Times < 0:
		return fmt.Errorf("delay, skip and times cannot be negative")
	}
	return nil
}

// hit returns the rule that applies to a call on a thing of that name, if
// there is one, and counts it. s.mu must be held.
func (s *Sim) hit(effects []Effect, provider, call, name string) *Fault {
	for _, f := range s.faults {
		if !slices.Contains(effects, f.Effect) || f.Provider != "" && f.Provider != provider {
			continue
		}
		if !matches(f.Call, call) || !matches(f.Match, name) {
			continue
		}
		if f.Times > 0 && f.Hits-f.Skip >= f.Times {
			continue
		}
		f.Hits++
		if f.Hits <= f.Skip {
			continue
		}
		found := f.Fault
		return &found
	}
	return nil
}

func matches(pattern, s string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	ok, _ := path.Match(pattern, s)
	return ok
}
