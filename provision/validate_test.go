package provision

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckHostName(t *testing.T) {
	for name, would := range map[string]string{
		"node-1": "", "N": "", "a.b-c.d": "", "1": "", strings.Repeat("a", 63): "",
		"under_score": `"under-score"`, "Sp ace": `"sp-ace"`, "-x-": `"x"`, "a..b": `"a.b"`, "x.": `"x"`, "ünder": `"nder"`,
		"___": `"node-1"`, strings.Repeat("a", 64): `"` + strings.Repeat("a", 63) + `"`, "a\nb": `"a-b"`,
	} {
		err := checkHostName(name)
		if would == "" && err != nil || would != "" && (err == nil || !strings.HasSuffix(err.Error(), would+" would do")) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSuggestedNamesWouldDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		if would := suggestHostName(name); would != "" && checkHostName(would) != nil {
			t.Fatalf("%q is suggested for %q, and refused", would, name)
		}
	})
}

func TestCheckUserData(t *testing.T) {
	for data, ok := range map[string]bool{
		"": true, "#cloud-config\nä: 1\n": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
		"\ufeff#cloud-config": false, "a\r\nb": false, "a\rb": false, "\xff": false, "a\x00b": false,
	} {
		if err := checkUserData(data, 64); (err == nil) != ok {
			t.Errorf("%q: %v", clip(data, 20), err)
		}
	}
}

func TestCheckCIDRs(t *testing.T) {
	for cidr, text := range map[string]string{
		"0.0.0.0/0": "", "::/0": "", "198.51.100.0/24": "", "2001:db8::/32": "", "198.51.100.7/32": "",
		"198.51.100.7": `"198.51.100.7/32" would do`, "2001:db8::1": `"2001:db8::1/128" would do`, "198.51.100.7/24": `"198.51.100.0/24" would do`,
		"": "no network", "everywhere": "no network", "1.2.3.4/33": "no network", "fe80::1%eth0": "no network",
	} {
		err := checkCIDRs([]string{"10.0.0.0/8", cidr})
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%q: %v", cidr, err)
		}
	}
}

func TestPlainPrice(t *testing.T) {
	for in, want := range map[string]string{
		"4.1531000000000000": "4.1531", "4.5000000000": "4.50", "4": "4.00", "100": "100.00", "0.0060000000000000": "0.006", "0": "0.00",
		"1e2": "100.00", "1.5E-3": "0.0015", "2e+1": "20.00", "": "", "free": "", "-1": "", "1,5": "", "1e999999999": "", ".5": "", "1.": "", "0x10": "", "1_000": "",
	} {
		if got := plainPrice(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
