package provision

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The shapes of the EC2 API are the SDK's; this is what is made of them.

// awsNameTag is the tag that AWS's own tools show as a thing's name.
const awsNameTag = "Name"

func awsTags(labels map[string]string, name string) []types.Tag {
	tags := make([]types.Tag, 0, len(labels)+1)
	for _, k := range sortedKeys(labels) {
		tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(labels[k])})
	}
	if name != "" {
		tags = append(tags, types.Tag{Key: aws.String(awsNameTag), Value: aws.String(name)})
	}
	return tags
}

// awsLabels takes the name, and what AWS itself adds, off the tags.
func awsLabels(tags []types.Tag) (labels map[string]string, name string) {
	labels = make(map[string]string, len(tags))
	for _, t := range tags {
		key, value := aws.ToString(t.Key), aws.ToString(t.Value)
		switch {
		case key == awsNameTag:
			name = value
		case !strings.HasPrefix(key, "aws:"):
			labels[key] = value
		}
	}
	return labels, name
}

func awsFilter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// ourFilters select what carries our short name and all of the given labels.
func (a *AWS) ourFilters(more map[string]string) []types.Filter {
	filters := []types.Filter{awsFilter("tag:"+managedBy, a.labels.short)}
	for _, k := range sortedKeys(more) {
		filters = append(filters, awsFilter("tag:"+k, more[k]))
	}
	return filters
}

// awsInstance is an instance as far as it is used here.
type awsInstance struct {
	id, region, name string
	size, zone       string
	state            types.InstanceStateName
	reason           string // code of why it is in its state
	reasonText       string
	ipv4, ipv6       string
	groups           []string
	created          time.Time
	labels           map[string]string
}

func awsInstanceOf(region string, i types.Instance) awsInstance {
	s := awsInstance{
		id: aws.ToString(i.InstanceId), region: region, size: string(i.InstanceType),
		ipv4: aws.ToString(i.PublicIpAddress), ipv6: aws.ToString(i.Ipv6Address), created: aws.ToTime(i.LaunchTime),
	}
	s.labels, s.name = awsLabels(i.Tags)
	if i.State != nil {
		s.state = i.State.Name
	}
	if i.StateReason != nil {
		s.reason, s.reasonText = aws.ToString(i.StateReason.Code), aws.ToString(i.StateReason.Message)
	}
	if i.Placement != nil {
		s.zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	groups := i.SecurityGroups
	for _, n := range i.NetworkInterfaces {
		groups = append(groups, n.Groups...)
		if s.ipv6 == "" && len(n.Ipv6Addresses) > 0 {
			s.ipv6 = aws.ToString(n.Ipv6Addresses[0].Ipv6Address)
		}
	}
	seen := map[string]bool{}
	for _, g := range groups {
		if id := aws.ToString(g.GroupId); !seen[id] {
			seen[id] = true
			s.groups = append(s.groups, id)
		}
	}
	return s
}

func (i awsInstance) serverID() string { return awsID(i.region, i.id) }

// awsUserData is user-data as EC2 takes it: compressed when it would not fit
// otherwise, which cloud-init unpacks by itself; base64 in any case. Compressing
// the same text gives the same bytes.
func awsUserData(text string) (encoded string, err error) {
	data := []byte(text)
	if len(data) > awsUserDataLimit {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return "", err
		}
		_, err = w.Write(data)
		if err = errors.Join(err, w.Close()); err != nil {
			return "", err
		}
		data = b.Bytes()
	}
	if len(data) > awsUserDataLimit {
		return "", errTooLong{len(text), len(data)}
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// awsFresh remembers instances that were just made: EC2's own lists may not
// know them yet, and "not found" does not mean gone.
type awsFresh struct {
	mu    sync.Mutex
	known map[string]awsNew // by server id
}

type awsNew struct {
	instance awsInstance
	until    time.Time
	// removed says that it was us who ended it: what EC2 still shows of it for
	// an hour is not shown.
	removed bool
}

// awsRemembered is how long a terminated instance can still be seen.
const awsRemembered = 2 * time.Hour

func (f *awsFresh) made(i awsInstance) {
	f.put(i.serverID(), awsNew{instance: i, until: time.Now().Add(awsGrace)})
}

func (f *awsFresh) remove(serverID string) {
	f.put(serverID, awsNew{removed: true, until: time.Now().Add(awsRemembered)})
}

func (f *awsFresh) put(serverID string, n awsNew) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for id, old := range f.known {
		if now.After(old.until) {
			delete(f.known, id)
		}
	}
	f.known[serverID] = n
}

// seen notes that EC2 knows the instance by now: from here on, its word counts.
func (f *awsFresh) seen(serverID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.known[serverID]; ok && !n.removed {
		delete(f.known, serverID)
	}
}

// get returns a new instance that EC2 need not know yet.
func (f *awsFresh) get(serverID string) (awsInstance, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.known[serverID]
	return n.instance, ok && !n.removed && time.Now().Before(n.until)
}

func (f *awsFresh) isRemoved(serverID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[serverID].removed
}

// in returns the new instances of a region.
func (f *awsFresh) in(region string) []awsInstance {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []awsInstance
	for _, id := range sortedKeys(f.known) {
		if n := f.known[id]; !n.removed && n.instance.region == region && time.Now().Before(n.until) {
			list = append(list, n.instance)
		}
	}
	return list
}
