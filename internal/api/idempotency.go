package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
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
			spec.Name = madeUpName()
		}
		n, err = s.fleet.CreateNode(ctx, spec)
		return n, err == nil, err
	}
	unlock := s.keys.lock(key)
	defer unlock()
	request, err := json.Marshal(in)
	if err != nil {
		return fleet.Node{}, false, err
	}
	keyHash, requestHash := digest(key), digest(string(request))
	earlier, err := s.fleet.Nodes(ctx, fleet.NodeFilter{Labels: map[string]string{labelKey: keyHash}, IncludeDeleted: true})
	if err != nil {
		return fleet.Node{}, false, err
	}
	if len(earlier) > 0 {
		if earlier[0].Spec.Labels[labelRequest] != requestHash {
			return fleet.Node{}, false, &problem{Problem: plainProblem(http.StatusConflict, client.ClassConflict,
				"this Idempotency-Key has made node "+earlier[0].Name+" from another request", "use a new key for a new request")}
		}
		return earlier[0], false, nil
	}
	if spec.Labels == nil {
		spec.Labels = map[string]string{}
	}
	spec.Labels[labelKey], spec.Labels[labelRequest] = keyHash, requestHash
	if spec.Name == "" {
		spec.Name = madeUpName()
	}
	n, err = s.fleet.CreateNode(ctx, spec)
	return n, err == nil, err
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
// alike unlikely.
func madeUpName() string {
	pick := func(words []string) string {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(len(words))))
		if err != nil {
			return words[0] // crypto/rand ends the program before it fails
		}
		return words[i.Int64()]
	}
	tail := make([]byte, 2)
	_, _ = rand.Read(tail)
	return pick(nameFirst) + "-" + pick(nameSecond) + "-" + hex.EncodeToString(tail)
}
