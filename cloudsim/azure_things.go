package cloudsim

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Resources: what all kinds have in common.

// azureThing is one resource. Its body is kept as it was sent, and what the
// service adds is put in when it is read.
type azureThing struct {
	kind     *azureKind
	group    *azureGroup
	name     string
	location string
	tags     map[string]any
	sku      any
	props    map[string]any
	state    string // provisioningState
	created  time.Time
	etag     int
	hidden   time.Time // from lists until then

	// Of the world, as far as the kind has it.
	server *server
	ip     *publicIP
	entry  *LedgerEntry // of a disk

	failCode, failText string // of a machine that failed
	deallocated        bool
	// A network interface is kept for a machine whose create failed.
	reservedFor   string
	reservedUntil time.Time
}

// azureKind is a type of resource.
type azureKind struct {
	namespace, collection string
	title                 string // in the names of calls: "network interface"
}

var (
	azureMachines   = &azureKind{"Microsoft.Compute", "virtualMachines", "server"}
	azureDisks      = &azureKind{"Microsoft.Compute", "disks", "disk"}
	azureKeys       = &azureKind{"Microsoft.Compute", "sshPublicKeys", "ssh key"}
	azureNetworks   = &azureKind{"Microsoft.Network", "virtualNetworks", "network"}
	azureFirewalls  = &azureKind{"Microsoft.Network", "networkSecurityGroups", "security group"}
	azureAddresses  = &azureKind{"Microsoft.Network", "publicIPAddresses", "public ip"}
	azureInterfaces = &azureKind{"Microsoft.Network", "networkInterfaces", "network interface"}
)

func azureKinds() []*azureKind {
	return []*azureKind{azureMachines, azureDisks, azureKeys, azureNetworks, azureFirewalls, azureAddresses, azureInterfaces}
}

// put does what a PUT of the kind does. A new thing has to be kept.
func (a azure) put(t *azureThing, isNew bool) error {
	switch t.kind {
	case azureMachines:
		return a.putMachine(t, isNew)
	case azureNetworks:
		return a.putNetwork(t, isNew)
	case azureFirewalls:
		return a.putFirewall(t, isNew)
	case azureAddresses:
		return a.putAddress(t, isNew)
	case azureInterfaces:
		return a.putInterface(t, isNew)
	case azureKeys:
		return a.putKey(t, isNew)
	}
	return azureFail(http.StatusBadRequest, "BadRequest", "%s cannot be made here by themselves.", t.kind.typeName())
}

func (a azure) remove(t *azureThing) error {
	if t.kind == azureMachines {
		return a.removeMachine(t)
	}
	return a.removePart(t)
}

// view adds what the service knows to what was sent.
func (a azure) view(t *azureThing, props map[string]any) {
	switch t.kind {
	case azureMachines:
		a.viewMachine(t, props)
	case azureNetworks:
		a.viewNetwork(t, props)
	case azureFirewalls:
		a.viewFirewall(t, props)
	case azureAddresses:
		a.viewAddress(t, props)
	case azureInterfaces:
		a.viewInterface(t, props)
	case azureDisks:
		a.viewDisk(t, props)
	}
}

func (k *azureKind) typeName() string { return k.namespace + "/" + k.collection }

func (k *azureKind) is(namespace, collection string) bool {
	return strings.EqualFold(k.namespace, namespace) && strings.EqualFold(k.collection, collection)
}

type azureGroup struct {
	name, location string
	tags           map[string]any
	account        *azureAccount
}

func (g *azureGroup) id() string {
	return "/subscriptions/" + g.account.subscription + "/resourceGroups/" + g.name
}

func (t *azureThing) id() string {
	return t.group.id() + "/providers/" + t.kind.typeName() + "/" + t.name
}

// find returns the thing of an id, in whatever case it is written.
func (c *azureAccount) find(id string) *azureThing { return c.things[strings.ToLower(id)] }

// ofKind returns the things of a kind, as they were made.
func (c *azureAccount) ofKind(kind *azureKind) []*azureThing {
	var out []*azureThing
	for _, t := range c.order {
		if t.kind == kind {
			out = append(out, t)
		}
	}
	return out
}

func (c *azureAccount) drop(t *azureThing) {
	delete(c.things, strings.ToLower(t.id()))
	c.order = slices.DeleteFunc(c.order, func(o *azureThing) bool { return o == t })
}

// textOf reads a text at a path of nested members; empty when there is none.
func textOf(m map[string]any, path ...string) string {
	v := valueOf(m, path...)
	s, _ := v.(string)
	return s
}

func valueOf(m map[string]any, path ...string) any {
	var v any = m
	for _, p := range path {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[p]
	}
	return v
}

// listOf reads a list of objects.
func listOf(m map[string]any, path ...string) []map[string]any {
	raw, _ := valueOf(m, path...).([]any)
	var out []map[string]any
	for _, v := range raw {
		if o, ok := v.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// copied is a deep copy of what JSON holds.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = copied(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copied(e)
		}
		return out
	}
	return v
}

// render is a thing as the API shows it.
func (a azure) render(t *azureThing) map[string]any {
	props, _ := copied(t.props).(map[string]any)
	props["provisioningState"] = t.state
	out := map[string]any{
		"id": t.id(), "name": t.name, "type": t.kind.typeName(), "location": t.location,
		"etag": fmt.Sprintf(`W/"%d"`, t.etag), "properties": props,
	}
	if t.kind == azureDisks || t.kind == azureKeys {
		delete(out, "etag")
	}
	if t.kind == azureKeys {
		delete(props, "provisioningState")
	}
	if t.tags != nil {
		out["tags"] = t.tags
	}
	if t.sku != nil {
		out["sku"] = t.sku
	}
	a.view(t, props)
	if by, ok := props["managedBy"]; ok {
		out["managedBy"] = by
		delete(props, "managedBy")
	}
	return out
}

func (a azure) findGroup(name string) (*azureGroup, error) {
	if g := a.account.groups[strings.ToLower(name)]; g != nil {
		return g, nil
	}
	return nil, azureFail(http.StatusNotFound, "ResourceGroupNotFound", "Resource group '%s' could not be found.", name)
}

// findThing is the thing that the path names: …/providers/{ns}/{kind}/{name}.
func (a azure) findThing(kind *azureKind) (*azureThing, error) {
	g, err := a.findGroup(a.rest[1])
	if err != nil {
		return nil, err
	}
	name := a.rest[5]
	if t := a.account.find(g.id() + "/providers/" + kind.typeName() + "/" + name); t != nil {
		return t, nil
	}
	return nil, azureFail(http.StatusNotFound, "ResourceNotFound", "The Resource '%s/%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix", kind.typeName(), name, g.name)
}

func (a azure) getThing(kind *azureKind) error {
	t, err := a.findThing(kind)
	if err != nil {
		return err
	}
	a.ok(a.render(t))
	return nil
}

// listThings lists a kind in the group, or in the whole subscription.
func (a azure) listThings(kind *azureKind) error {
	group := ""
	if strings.EqualFold(a.rest[0], "resourceGroups") {
		g, err := a.findGroup(a.rest[1])
		if err != nil {
			return err
		}
		group = g.id()
	}
	var all []any
	for _, t := range a.account.ofKind(kind) {
		if (group == "" || t.group.id() == group) && !a.now.Before(t.hidden) {
			all = append(all, a.render(t))
		}
	}
	a.page(all, azurePerPage)
	return nil
}

const azurePerPage = 50

var (
	azureGroupName = regexp.MustCompile(`^[\p{L}\p{N}_().-]{0,89}[\p{L}\p{N}_()-]$`)
	azureNetName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,78}[A-Za-z0-9_])?$`)
	azureVMName    = regexp.MustCompile(`^[A-Za-z0-9.-][A-Za-z0-9._-]{0,62}[A-Za-z0-9_]$|^[A-Za-z0-9]$`)
)

// azureBody is what every PUT of a resource has.
type azureBody struct {
	Location   string         `json:"location"`
	Tags       map[string]any `json:"tags"`
	Sku        any            `json:"sku"`
	Properties map[string]any `json:"properties"`
}

// putThing makes a thing, or changes one: a PUT replaces.
func (a azure) putThing(kind *azureKind) error {
	g, err := a.findGroup(a.rest[1])
	if err != nil {
		return err
	}
	var b azureBody
	if err := a.read(&b); err != nil {
		return err
	}
	name := a.rest[5]
	if err := azureCheckPut(kind, name, b); err != nil {
		return err
	}
	old := a.account.find(g.id() + "/providers/" + kind.typeName() + "/" + name)
	switch {
	case old != nil && a.r.Header.Get("If-None-Match") == "*":
		return azureFail(http.StatusPreconditionFailed, "PreconditionFailed", "The condition 'If-None-Match: *' is not met: %s exists.", old.id())
	case old != nil && !strings.EqualFold(azureRegionName(b.Location), old.location):
		return azureFail(http.StatusConflict, "InvalidResourceLocation", "The resource '%s' already exists in location '%s' in resource group '%s'. A resource with the same name cannot be created in location '%s'. Please select a new resource name.", name, old.location, g.name, b.Location)
	case old != nil && old.state == "Deleting":
		return azureFail(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress: %s is being deleted.", old.id())
	}
	t := &azureThing{kind: kind, group: g, name: name, created: a.now}
	if old != nil {
		c := *old // changed only when the change is accepted
		t = &c
	}
	t.location, t.tags, t.sku, t.props = azureRegionName(b.Location), b.Tags, b.Sku, b.Properties
	if t.props == nil {
		t.props = map[string]any{}
	}
	t.etag++
	if old != nil {
		if err := a.put(t, false); err != nil {
			return err
		}
		*old = *t
		return nil
	}
	return a.put(t, true)
}

// keep puts a new thing among the others.
func (a azure) keep(t *azureThing) {
	a.account.things[strings.ToLower(t.id())] = t
	a.account.order = append(a.account.order, t)
}

func azureCheckPut(kind *azureKind, name string, b azureBody) error {
	pattern := azureNetName
	if kind == azureMachines {
		pattern = azureVMName
	}
	switch {
	case !pattern.MatchString(name):
		return azureFail(http.StatusBadRequest, "InvalidResourceName", "Resource name %s is invalid.", name)
	case b.Location == "":
		return azureFail(http.StatusBadRequest, "LocationRequired", "The location property is required for this definition.")
	case !azureHasRegion(b.Location):
		return azureFail(http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is '%s'.", b.Location, kind.typeName(), strings.Join(azureRegionNames(), ","))
	}
	return azureCheckTags(b.Tags)
}

func azureCheckTags(tags map[string]any) error {
	if len(tags) > 50 {
		return azureFail(http.StatusBadRequest, "InvalidTags", "The number of tags specified exceeds the maximum allowed for a resource: 50.")
	}
	for k, v := range tags {
		text, ok := v.(string)
		if !ok || k == "" || len(k) > 512 || len(text) > 256 || strings.ContainsAny(k, `<>%&\?/`) {
			return azureFail(http.StatusBadRequest, "InvalidTagNameCharacters", "The tag name '%s' or its value is not valid.", k)
		}
	}
	return nil
}

// deleteThing starts the end of a thing. One that does not exist is gone.
func (a azure) deleteThing(kind *azureKind) error {
	t, err := a.findThing(kind)
	if err != nil {
		if e, ok := err.(*azureError); ok && e.code == "ResourceNotFound" {
			a.bare(http.StatusNoContent)
			return nil
		}
		return err
	}
	return a.remove(t)
}

// Resource groups.

func (a azure) renderGroup(g *azureGroup) map[string]any {
	out := map[string]any{
		"id": g.id(), "name": g.name, "type": "Microsoft.Resources/resourceGroups", "location": g.location,
		"properties": map[string]any{"provisioningState": "Succeeded"},
	}
	if g.tags != nil {
		out["tags"] = g.tags
	}
	return out
}

func (a azure) headGroup() error {
	if _, err := a.findGroup(a.rest[1]); err != nil {
		a.bare(http.StatusNotFound)
		return nil
	}
	a.bare(http.StatusNoContent)
	return nil
}

func (a azure) getGroup() error {
	g, err := a.findGroup(a.rest[1])
	if err != nil {
		return err
	}
	a.ok(a.renderGroup(g))
	return nil
}

func (a azure) listGroups() error {
	var all []any
	for _, name := range slices.Sorted(maps.Keys(a.account.groups)) {
		all = append(all, a.renderGroup(a.account.groups[name]))
	}
	a.page(all, azurePerPage)
	return nil
}

func (a azure) putGroup() error {
	var b azureBody
	if err := a.read(&b); err != nil {
		return err
	}
	name := a.rest[1]
	if !azureGroupName.MatchString(name) {
		return azureFail(http.StatusBadRequest, "InvalidResourceGroup", "The provided resource group name '%s' has invalid characters or length.", name)
	}
	if !azureHasRegion(b.Location) {
		return azureFail(http.StatusBadRequest, "LocationNotAvailableForResourceGroup", "The provided location '%s' is not available for resource group.", b.Location)
	}
	if err := azureCheckTags(b.Tags); err != nil {
		return err
	}
	g := a.account.groups[strings.ToLower(name)]
	switch {
	case g == nil:
		g = &azureGroup{name: name, location: azureRegionName(b.Location), tags: b.Tags, account: a.account}
		a.account.groups[strings.ToLower(name)] = g
		a.send(http.StatusCreated, a.renderGroup(g))
		return nil
	case g.location != azureRegionName(b.Location):
		return azureFail(http.StatusConflict, "InvalidResourceGroupLocation", "Invalid resource group location '%s'. The Resource group already exists in location '%s'.", b.Location, g.location)
	}
	g.tags = b.Tags
	a.ok(a.renderGroup(g))
	return nil
}

// deleteGroup takes what is in it along; here only an empty one goes.
func (a azure) deleteGroup() error {
	g, err := a.findGroup(a.rest[1])
	if err != nil {
		return err
	}
	for _, t := range a.account.order {
		if t.group == g && t.kind != azureNetworks {
			return azureFail(http.StatusConflict, "ResourceGroupDeletionBlocked", "Deletion of resource group '%s' failed as resources with identifiers '%s' could not be deleted.", g.name, t.id())
		}
	}
	a.account.order = slices.DeleteFunc(a.account.order, func(t *azureThing) bool {
		if t.group == g {
			delete(a.account.things, strings.ToLower(t.id()))
		}
		return t.group == g
	})
	delete(a.account.groups, strings.ToLower(g.name))
	a.begin202(azureOpLocation, "", g.location, 2*time.Second, nil)
	return nil
}

// listResources lists all kinds in a group, by tag when a filter says so.
func (a azure) listResources() error {
	g, err := a.findGroup(a.rest[1])
	if err != nil {
		return err
	}
	filter := regexp.MustCompile(`^tagName eq '([^']+)'(?: and tagValue eq '([^']*)')?$`).FindStringSubmatch(a.r.URL.Query().Get("$filter"))
	var all []any
	for _, t := range a.account.order {
		if t.group != g || a.now.Before(t.hidden) {
			continue
		}
		if filter != nil {
			if v, has := t.tags[filter[1]]; !has || filter[2] != "" && v != filter[2] {
				continue
			}
		}
		one := map[string]any{"id": t.id(), "name": t.name, "type": t.kind.typeName(), "location": t.location}
		if t.tags != nil && filter == nil {
			one["tags"] = t.tags // the filter costs them
		}
		all = append(all, one)
	}
	a.page(all, azurePerPage)
	return nil
}
