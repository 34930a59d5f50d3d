package cloudsim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Resources: what all kinds have in common.

// Where things are.
const (
	gcpZonal    = "zone"
	gcpRegional = "region"
	gcpGlobal   = "global"
)

// gcpThing is one resource. Its body is kept as it was sent, and what the
// service adds is put in when it is read.
type gcpThing struct {
	kind    *gcpKind
	scope   string // zones/…, regions/…, global
	name    string
	id      int64
	props   map[string]any
	created time.Time
	hidden  time.Time // from lists until then

	// Of an instance.
	server  *server
	machine gcpType
	staged  bool
	// When the power was last put on, and taken away.
	started, stopped time.Time
	disks            []*gcpThing
	ending           time.Time // when its delete is over; zero: none runs
	private          string
	// Of a disk, an address: who uses it, and what it costs.
	user  *gcpThing
	entry *LedgerEntry
	// autoDelete tells that a disk goes with its instance.
	autoDelete bool
	// ready tells that a network's subnets are there.
	ready bool
}

// gcpKind is a type of resource.
type gcpKind struct {
	collection, word string // instances, instance
	title            string // in the names of calls: "server"
	places           []string
}

var (
	gcpInstances   = &gcpKind{"instances", "instance", "server", []string{gcpZonal}}
	gcpDisks       = &gcpKind{"disks", "disk", "disk", []string{gcpZonal}}
	gcpAddresses   = &gcpKind{"addresses", "address", "public ip", []string{gcpRegional, gcpGlobal}}
	gcpNetworks    = &gcpKind{"networks", "network", "network", []string{gcpGlobal}}
	gcpSubnetworks = &gcpKind{"subnetworks", "subnetwork", "subnet", []string{gcpRegional}}
	gcpFirewalls   = &gcpKind{"firewalls", "firewall", "firewall", []string{gcpGlobal}}
)

func gcpKinds() []*gcpKind {
	return []*gcpKind{gcpInstances, gcpDisks, gcpAddresses, gcpNetworks, gcpSubnetworks, gcpFirewalls}
}

func (k *gcpKind) plural() string { return k.title + "s" }

// region is the thing's, empty for a global one.
func (t *gcpThing) region() string {
	where, name, _ := strings.Cut(t.scope, "/")
	switch where {
	case "zones":
		return gcpRegionOf(name)
	case "regions":
		return name
	}
	return ""
}

func (t *gcpThing) zone() string { return strings.TrimPrefix(t.scope, "zones/") }

func (a *gcpAccount) find(scope string, kind *gcpKind, name string) *gcpThing {
	return a.things[scope+"/"+kind.collection+"/"+name]
}

func (a *gcpAccount) keep(t *gcpThing) {
	a.things[t.scope+"/"+t.kind.collection+"/"+t.name] = t
	a.order = append(a.order, t)
}

func (a *gcpAccount) drop(t *gcpThing) {
	delete(a.things, t.scope+"/"+t.kind.collection+"/"+t.name)
	a.order = slices.DeleteFunc(a.order, func(o *gcpThing) bool { return o == t })
}

// has tells whether a thing is still there.
func (a *gcpAccount) has(t *gcpThing) bool { return a.find(t.scope, t.kind, t.name) == t }

func (a *gcpAccount) pathOf(t *gcpThing) string { return a.path(t.scope, t.kind.collection, t.name) }

// referred finds what a reference names, of one kind; from is the scope that a
// short one is meant in.
func (a *gcpAccount) referred(kind *gcpKind, ref, from string) *gcpThing {
	project, parts := gcpRef(ref)
	if project != "" && project != a.project {
		return nil
	}
	n := len(parts)
	switch {
	case n == 1:
		return a.find(from, kind, parts[0])
	case n >= 2 && parts[n-2] == kind.collection:
		return a.find(strings.Join(parts[:n-2], "/"), kind, parts[n-1])
	}
	return nil
}

// gcpFingerprint is of what it must not have changed since it was read.
func gcpFingerprint(v any) string {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(v) // of what was JSON
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, h.Sum64()))
}

// render is a thing as the API shows it.
func (g gcp) render(t *gcpThing) map[string]any {
	out, _ := copied(t.props).(map[string]any)
	out["kind"], out["id"], out["name"] = "compute#"+t.kind.word, itoa(t.id), t.name
	out["creationTimestamp"], out["selfLink"] = gcpWritten(t.created), gcpHost+g.account.pathOf(t)
	gcpPutScope(out, t.scope, g.account.project)
	switch t.kind {
	case gcpInstances:
		g.viewInstance(t, out)
	case gcpDisks:
		g.viewDisk(t, out)
	case gcpAddresses:
		g.viewAddress(t, out)
	case gcpNetworks:
		g.viewNetwork(t, out)
	}
	return out
}

var gcpResourceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

const gcpNamePattern = "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"

// insert makes a thing of the request's body.
func (g gcp) insert(kind *gcpKind) error {
	if err := g.checkScope(); err != nil {
		return err
	}
	body, err := g.read()
	if err != nil {
		return err
	}
	t := &gcpThing{kind: kind, scope: g.scope(), name: textOf(body, "name"), props: body, created: g.now}
	if !gcpResourceName.MatchString(t.name) {
		return gcpInvalid("resource.name", t.name, gcpNamePattern)
	}
	if err := gcpCheckLabels("resource.labels", body["labels"]); err != nil {
		return err
	}
	if g.account.find(t.scope, kind, t.name) != nil {
		return gcpFail(http.StatusConflict, "alreadyExists", "The resource '%s' already exists", g.account.pathOf(t))
	}
	for _, computed := range []string{"kind", "id", "selfLink", "creationTimestamp", "status"} {
		delete(body, computed)
	}
	t.id = g.sim.world.id(gcpName, kind.title)
	switch kind {
	case gcpInstances:
		return g.insertInstance(t)
	case gcpDisks:
		return g.insertDisk(t)
	case gcpAddresses:
		return g.insertAddress(t)
	case gcpNetworks:
		return g.insertNetwork(t)
	case gcpSubnetworks:
		return g.insertSubnetwork(t)
	}
	return g.insertFirewall(t)
}

var (
	gcpLabelKey   = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	gcpLabelValue = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
)

func gcpCheckLabels(field string, v any) error {
	labels, _ := v.(map[string]any)
	if len(labels) > 64 {
		return gcpInvalid(field, fmt.Sprintf("%d labels", len(labels)), "At most 64 labels are allowed.")
	}
	for _, k := range sortedKeys(labels) {
		text, ok := labels[k].(string)
		switch {
		case !gcpLabelKey.MatchString(k):
			return gcpInvalid(field, k, "Label key '%s' violates format constraints. The key must start with a lowercase character, can only contain lowercase letters, numeric characters, underscores and dashes. The key can be at most 63 characters long. International characters are allowed.", k)
		case !ok || !gcpLabelValue.MatchString(text):
			return gcpInvalid(field, text, "Label value '%s' violates format constraints. The value can only contain lowercase letters, numeric characters, underscores and dashes. The value can be at most 63 characters long. International characters are allowed.", text)
		}
	}
	return nil
}

// findThing is the thing that the path names, by its name or its number.
func (g gcp) findThing(kind *gcpKind) (*gcpThing, error) {
	if err := g.checkScope(); err != nil {
		return nil, err
	}
	name := g.r.PathValue("name")
	if t := g.account.find(g.scope(), kind, name); t != nil {
		return t, nil
	}
	for _, t := range g.account.order {
		if t.kind == kind && t.scope == g.scope() && itoa(t.id) == name {
			return t, nil
		}
	}
	return nil, gcpMissing(g.account.path(g.scope(), kind.collection, name))
}

func (g gcp) getThing(kind *gcpKind) error {
	t, err := g.findThing(kind)
	if err != nil {
		return err
	}
	g.send(g.render(t))
	return nil
}

// rows are those of a kind, in the order of their names.
func (g gcp) rows(kind *gcpKind, scope string) []gcpRow {
	var rows []gcpRow
	for _, t := range g.account.order {
		if t.kind == kind && (scope == "" || t.scope == scope) && !g.now.Before(t.hidden) {
			rows = append(rows, gcpRow{t.scope, g.render(t)})
		}
	}
	slices.SortStableFunc(rows, func(a, b gcpRow) int {
		return strings.Compare(a.scope+"/"+textOf(a.shown, "name"), b.scope+"/"+textOf(b.shown, "name"))
	})
	return rows
}

func (g gcp) listThings(kind *gcpKind) error {
	if err := g.checkScope(); err != nil {
		return err
	}
	return g.page("compute#"+kind.word+"List", g.rows(kind, g.scope()))
}

// gcpScopesOf are the scopes that an aggregated list has.
func gcpScopesOf(places ...string) []string {
	var all []string
	for _, place := range places {
		switch place {
		case gcpGlobal:
			all = append(all, gcpGlobal)
		case gcpRegional:
			for _, r := range gcpRegions() {
				all = append(all, "regions/"+r.name)
			}
		case gcpZonal:
			for _, z := range gcpZones() {
				all = append(all, "zones/"+z)
			}
		}
	}
	return all
}

func (g gcp) aggregate(kind *gcpKind) error {
	if kind == gcpNetworks || kind == gcpFirewalls {
		return gcpMissing(g.r.URL.Path)
	}
	return g.aggregated("compute#"+kind.word+"AggregatedList", kind.collection, gcpScopesOf(kind.places...), g.rows(kind, ""))
}

func (g gcp) inUse(t, by *gcpThing) error {
	return gcpFail(http.StatusBadRequest, "resourceInUseByAnotherResource", "The %s resource '%s' is already being used by '%s'", t.kind.word, g.account.pathOf(t), g.account.pathOf(by))
}

// deleteThing starts the end of a thing.
func (g gcp) deleteThing(kind *gcpKind) error {
	t, err := g.findThing(kind)
	if err != nil {
		return err
	}
	switch kind {
	case gcpInstances:
		return g.deleteInstance(t)
	case gcpNetworks, gcpSubnetworks:
		if by := g.account.usesNetwork(t); by != nil {
			return g.inUse(t, by)
		}
	}
	if t.user != nil {
		return g.inUse(t, t.user)
	}
	takes := map[*gcpKind]time.Duration{gcpNetworks: gcpNetworkTakes, gcpSubnetworks: gcpNetworkTakes, gcpFirewalls: gcpRuleTakes, gcpDisks: gcpPartTakes, gcpAddresses: gcpPartTakes}[kind]
	account := g.account
	return g.start("delete", t, takes, func(now time.Time) *gcpOpFailure {
		if !account.has(t) {
			return nil
		}
		if t.user != nil {
			return &gcpOpFailure{status: http.StatusBadRequest, code: "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", message: "The resource '" + account.pathOf(t) + "' is already being used by '" + account.pathOf(t.user) + "'"}
		}
		account.gone(t, now)
		return nil
	})
}

// gone ends a thing, and what goes with it.
func (a *gcpAccount) gone(t *gcpThing, now time.Time) {
	a.drop(t)
	if t.entry != nil && t.entry.DeletedAt.IsZero() {
		t.entry.DeletedAt = now
	}
	if t.kind == gcpNetworks {
		for _, s := range slices.Clone(a.order) {
			if s.kind == gcpSubnetworks && gcpLast(textOf(s.props, "network")) == t.name {
				a.drop(s)
			}
		}
	}
}
