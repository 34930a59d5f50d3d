package provision

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
)

// identity is what a create is recognised by: both parts are 40 hex digits,
// which fit a label at every provider.
type identity struct {
	key    string // of the idempotency key
	params string // of the parameters that matter
	own    bool   // no key was given: nobody else can know this one
}

func identityOf(opts CreateOpts) identity {
	id := identity{params: paramsHash(opts)}
	if opts.IdempotencyKey == "" {
		id.own = true
		id.key = shortHash([]byte(rand.Text()))
	} else {
		id.key = shortHash([]byte(opts.IdempotencyKey))
	}
	return id
}

// paramsHash covers everything of a create but its key. Lists are sorted,
// since their order means nothing.
func paramsHash(opts CreateOpts) string {
	opts.IdempotencyKey = ""
	opts.SSHKeys = slices.Sorted(slices.Values(opts.SSHKeys))
	opts.SSHSourceCIDRs = slices.Sorted(slices.Values(opts.SSHSourceCIDRs))
	if len(opts.Labels) == 0 {
		opts.Labels = nil
	}
	// encoding/json sorts the keys of maps, so that this is canonical. The
	// fields are named here: one added to CreateOpts later must not change the
	// hash of what is running.
	text, err := json.Marshal([]any{
		"v1", opts.Region, opts.Size, opts.Name, opts.UserData, opts.AllowSSHInbound, opts.Labels,
		opts.SSHKeys, opts.SSHSourceCIDRs, opts.Image, opts.Architecture, opts.DiskGB,
	})
	if err != nil {
		panic("provision: strings and numbers cannot fail to encode: " + err.Error())
	}
	return shortHash(text)
}

func shortHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:40]
}

// usedKeys remembers which name each of the last keys was used with. Where a
// provider's unique names are what makes a create idempotent, a repeat under
// another name shows only here: it costs a look-up then, and nothing in all
// other cases.
type usedKeys struct {
	mu    sync.Mutex
	names map[string]string
	order []string
	limit int
}

// use notes the key, and tells whether it was used with another name before.
func (u *usedKeys) use(key, name string) (otherName bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before, ok := u.names[key]; ok {
		return before != name
	}
	if u.names == nil {
		u.names = map[string]string{}
	}
	if len(u.order) >= u.limit {
		delete(u.names, u.order[0])
		u.order = u.order[1:]
	}
	u.names[key] = name
	u.order = append(u.order, key)
	return false
}

// gates lets one caller of each key through at a time, where a provider's API
// has nothing that would make two creates one.
type gates struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // closed when the one inside leaves
}

// enter waits until nobody is inside with the key, and returns how to leave.
func (g *gates) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		g.mu.Lock()
		inside, taken := g.busy[key]
		if !taken {
			if g.busy == nil {
				g.busy = map[string]chan struct{}{}
			}
			done := make(chan struct{})
			g.busy[key] = done
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				delete(g.busy, key)
				close(done)
			}, nil
		}
		g.mu.Unlock()
		select {
		case <-inside:
		case <-ctx.Done():
			return nil, notSent(ctx)
		}
	}
}
