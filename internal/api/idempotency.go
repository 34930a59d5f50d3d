package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/fleet"
)

// A create under an Idempotency-Key leaves two labels on its node: which key it
// was, and what was asked. So the memory of a key is part of the node's own
// record: it is written in the same transaction, outlives a restart and lasts
// as long as the record. Answers do not show the two.
const (
	labelKey     = "api-create-key"
	labelRequest = "api-create-request"
)

func visibleLabels(in map[string]string) map[string]string {
	var res map[string]string
	for k, v := range in {
		if k == labelKey || k == labelRequest {
			continue
		}
		if res == nil {
			res = make(map[string]string, len(in))
		}
		res[k] = v
	}
	return res
}

func checkLabels(in map[string]string) error {
	for k := range in {
		if k == labelKey || k == labelRequest {
			return invalid("labels: %s is a label of the API's own", k)
		}
	}
	return nil
}

// digest is short enough for a label at every provider.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:20])
}

// createOnce creates the node, or returns the one that the same key made.
// made tells which of the two it was.
func (s *service) createOnce(ctx context.Context, key string, in client.CreateNode) (n fleet.Node, made bool, err error) {
	spec, err := specOf(in)
	if err != nil {
		return fleet.Node{}, false, err
	}
	if key == "" {
		if spec.Name == "" {
			spec.Name = madeUpName(rand.Reader)
		}
		n, err = s.fleet.CreateNode(ctx, spec)
		return n, err == nil, err
	}
	request, err := json.Marshal(in)
	if err != nil {
		return fleet.Node{}, false, err
	}
	unlock := s.keys.lock(key)
	defer unlock()
	keyHash, requestHash := digest(key), digest(string(request))
	earlier, found, err := s.made.node(ctx, s.fleet, keyHash)
	switch {
	case err != nil:
		return fleet.Node{}, false, err
	case found:
		return sameRequest(earlier, requestHash)
	}
	if spec.Labels == nil {
		spec.Labels = map[string]string{}
	}
	spec.Labels[labelKey], spec.Labels[labelRequest] = keyHash, requestHash
	if spec.Name == "" {
		// From the key, so that two control planes make up the same.
		spec.Name = madeUpName(strings.NewReader(digest("name " + key)))
	}
	n, err = s.fleet.CreateNode(ctx, spec)
	if err == nil {
		s.made.add(keyHash, n.ID)
		return n, true, nil
	}
	// Another control plane over the same records may have been faster.
	if classOf(err) == client.ClassConflict {
		if other, oerr := s.fleet.Node(ctx, spec.Name); oerr == nil && other.Spec.Labels[labelKey] == keyHash {
			s.made.add(keyHash, other.ID)
			return sameRequest(other, requestHash)
		}
	}
	return fleet.Node{}, false, err
}

// sameRequest returns n when it was made from the same request.
func sameRequest(n fleet.Node, requestHash string) (fleet.Node, bool, error) {
	if n.Spec.Labels[labelRequest] != requestHash {
		return fleet.Node{}, false, &problem{Problem: plainProblem(http.StatusConflict, client.ClassConflict,
			"this Idempotency-Key has made node "+n.Name+" from another request", "use a new key for a new request")}
	}
	return n, false, nil
}

// madeNodes knows which node each key made. It reads the records once, so that
// a create among many nodes does not read them all. The zero value is ready.
type madeNodes struct {
	mu  sync.Mutex
	ids map[string]string // by the key's digest; nil until read
}

// node returns the node that a key made.
func (m *madeNodes) node(ctx context.Context, f Fleet, keyHash string) (n fleet.Node, found bool, err error) {
	id, err := m.lookup(ctx, f, keyHash)
	if err != nil || id == "" {
		return fleet.Node{}, false, err
	}
	n, err = f.Node(ctx, id)
	if err != nil && classOf(err) == client.ClassNotFound {
		return fleet.Node{}, false, nil // its record is gone, and with it the key
	}
	return n, err == nil, err
}

func (m *madeNodes) lookup(ctx context.Context, f Fleet, keyHash string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ids == nil {
		all, err := f.Nodes(ctx, fleet.NodeFilter{IncludeDeleted: true})
		if err != nil {
			return "", err
		}
		m.ids = make(map[string]string, len(all))
		for _, n := range all {
			if k := n.Spec.Labels[labelKey]; k != "" {
				m.ids[k] = n.ID
			}
		}
	}
	return m.ids[keyHash], nil
}

func (m *madeNodes) add(keyHash, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[keyHash] = id
}

// keyLocks lets one create at a time run under each key. The zero value is
// ready.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	mu    sync.Mutex
	users int
}

func (l *keyLocks) lock(key string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*keyLock{}
	}
	k := l.held[key]
	if k == nil {
		k = &keyLock{}
		l.held[key] = k
	}
	k.users++
	l.mu.Unlock()
	k.mu.Lock()
	return func() {
		k.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(l.held, key)
		}
	}
}

var (
	nameFirst  = strings.Fields("amber brisk calm clear coral crisp deft early fair fleet gentle grand keen kind lively lucid mellow merry noble north proud quiet rapid ready sharp silver sound steady still sunny swift tidal true vivid warm wide wise young")
	nameSecond = strings.Fields("albatross auk avocet bittern brant cormorant crane curlew dipper dunlin eider egret fulmar gannet godwit grebe gull heron ibis kestrel kittiwake knot lapwing loon merlin osprey petrel plover puffin rail sanderling shag skua snipe stork stilt swan teal tern whimbrel")
)

// madeUpName returns a name that is easy to say, with a tail that makes two
// alike unlikely. It takes six bytes of r.
func madeUpName(r io.Reader) string {
	b := make([]byte, 6)
	_, _ = io.ReadFull(r, b) // neither randomness nor a digest ends early
	pick := func(words []string, b []byte) string { return words[int(binary.BigEndian.Uint16(b))%len(words)] }
	return pick(nameFirst, b) + "-" + pick(nameSecond, b[2:]) + "-" + hex.EncodeToString(b[4:])
}
