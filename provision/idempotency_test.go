package provision

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"
)

func fullOpts() CreateOpts {
	return CreateOpts{
		Region: "r", Size: "s", Name: "n", UserData: "u", AllowSSHInbound: true, IdempotencyKey: "k",
		Labels: map[string]string{"a": "1", "b": "2"}, SSHKeys: []string{"x", "y"}, SSHSourceCIDRs: []string{"c", "d"},
		Image: "i", Architecture: "arm", DiskGB: 9,
	}
}

func TestIdentity(t *testing.T) {
	one, two := identityOf(fullOpts()), identityOf(fullOpts())
	if one != two || !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(one.key) || one.own {
		t.Errorf("identities %+v and %+v", one, two)
	}
	opts := fullOpts()
	opts.IdempotencyKey = ""
	if a, b := identityOf(opts), identityOf(opts); a.key == b.key || !a.own || a.params != one.params {
		t.Errorf("without key: %+v and %+v", a, b)
	}
}

// TestParamsHashIsFixed: servers that run carry it; a change here makes every
// repeat of a running create a conflict.
func TestParamsHashIsFixed(t *testing.T) {
	const want = "27bd0f31cf8d33642bec35b905c93ce019957444"
	if got := paramsHash(fullOpts()); got != want {
		t.Errorf("the hash of the same options is now %s", got)
	}
}

// TestEveryOptionIsInTheHash changes each field in turn, so that one that is
// added to CreateOpts later cannot be forgotten.
func TestEveryOptionIsInTheHash(t *testing.T) {
	base := paramsHash(fullOpts())
	typ := reflect.TypeFor[CreateOpts]()
	for i := range typ.NumField() {
		opts := fullOpts()
		f := reflect.ValueOf(&opts).Elem().Field(i)
		switch v := f.Addr().Interface().(type) {
		case *string:
			*v += "!"
		case *bool:
			*v = !*v
		case *int:
			*v++
		case *[]string:
			*v = append([]string{"new"}, *v...)
		case *map[string]string:
			*v = map[string]string{"other": "label"}
		default:
			t.Fatalf("field %s has the new type %s", typ.Field(i).Name, f.Type())
		}
		changed := paramsHash(opts) != base
		if want := typ.Field(i).Name != "IdempotencyKey"; changed != want {
			t.Errorf("field %s in the hash: %v, want %v", typ.Field(i).Name, changed, want)
		}
	}
}

func TestOrderIsNotInTheHash(t *testing.T) {
	opts := fullOpts()
	opts.SSHKeys = []string{"y", "x"}
	opts.SSHSourceCIDRs = []string{"d", "c"}
	if paramsHash(opts) != paramsHash(fullOpts()) {
		t.Error("the order of lists changes the hash")
	}
	if opts.SSHKeys[0] != "y" {
		t.Error("the caller's list was sorted")
	}
	if paramsHash(CreateOpts{Labels: map[string]string{}, SSHKeys: []string{}}) != paramsHash(CreateOpts{}) {
		t.Error("empty and absent differ")
	}
}

func TestUsedKeys(t *testing.T) {
	u := usedKeys{limit: 3}
	for i, c := range []struct {
		name  string
		other bool
	}{{"one", false}, {"one", false}, {"two", true}, {"two", true}, {"one", false}} {
		if got := u.use("k", c.name); got != c.other {
			t.Errorf("use %d, of name %s: %v, want %v", i, c.name, got, c.other)
		}
	}
	for i := range 10 {
		u.use(fmt.Sprint(i), "n")
	}
	if len(u.names) != 3 || len(u.order) != 3 || u.use("k", "three") {
		t.Errorf("remembers %d keys, %d in order", len(u.names), len(u.order))
	}
}
