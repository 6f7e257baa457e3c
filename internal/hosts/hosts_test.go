package hosts

import (
	"net/netip"
	"net/url"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]bool{
		"llm.example.com": true, "LLM.example.com.": true, "*.example.com": true, "ollama": true, "my_host-1": true, "llm.example.com:443": true,
		"*.example.com:8000": true, "10.1.2.3": true, "10.1.2.3:80": true, "10.0.0.0/8": true, "10.1.2.3/8": true, "10.0.0.0/8:8000": true,
		"fd12::1": true, "[fd12::1]": true, "[fd12::1]:80": true, "fd12::/16": true, "[fd12::/16]:80": true, "::ffff:10.0.0.1": true,
		"": false, "*": false, "*.": false, "*example.com": false, ".example.com": false, "a..b": false, "http://a": false, "a/b": false, "a b": false,
		"a:": false, "a:0": false, "a:65536": false, "a:b": false, "[a]": false, "[fd12::1": false, "[fd12::1]80": false, "[]": false, "fe80::1%eth0": false,
		"10.0.0": false, "10.0.0.256": false, "2130706433": false, "10.0.0.0/33": false, "a.*.b": false, "user@a": false, "**.a": false,
	} {
		if _, ok := Parse(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func TestAllows(t *testing.T) {
	list := NewList([]string{
		"llm.example.com", "*.Wild.example", "ported.example:8000", "10.1.0.0/16", "10.2.0.1:80", "fd12::/16", "broken/", "*",
	})
	for text, want := range map[string]bool{
		"https://llm.example.com/v1": true, "http://LLM.Example.com.:81": true, "http://a.wild.example": true, "http://a.b.wild.example": true,
		"http://ported.example:8000": true, "http://10.1.2.3": true, "http://[::ffff:10.1.2.3]:9": true, "http://10.2.0.1": true, "http://[fd12::7]": true,
		"http://wild.example": false, "http://awild.example": false, "http://llm.example.com.evil.org": false, "http://ported.example": false,
		"https://ported.example": false, "http://10.2.0.1:81": false, "https://10.2.0.1": false, "http://10.2.0.2": false, "http://127.0.0.1": false,
		"http://broken": false, "http://other.example": false, "http://0x0a.1.2.3": false, "http://[64:ff9b::10.1.2.3]": true, "http://[64:ff9b::10.3.2.3]": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if host, port := Of(u); list.Allows(host, port) != want || List(nil).Allows(host, port) {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

// TestAddressesThatAreNotPublicMustBeNamed: a name that matches the list may resolve to any public address, but to another address only if the
// list has that address, a range of it, or exactly this name.
func TestAddressesThatAreNotPublicMustBeNamed(t *testing.T) {
	list := NewList([]string{"*.wild.example", "exact.example", "ported.example:80", "10.1.0.0/16", "127.0.0.1:11434"})
	for _, c := range []struct {
		host, at string
		want     bool
	}{
		{"a.wild.example", "93.184.216.34:443", true}, {"a.wild.example", "[2606:2800::1]:443", true}, {"a.wild.example", "10.1.2.3:443", true},
		{"a.wild.example", "127.0.0.1:11434", true}, {"a.wild.example", "[::ffff:127.0.0.1]:11434", true},
		{"a.wild.example", "127.0.0.1:443", false}, {"a.wild.example", "10.2.0.1:443", false}, {"a.wild.example", "[::1]:443", false},
		{"a.wild.example", "100.64.0.1:443", false}, {"a.wild.example", "[fd00::1]:443", false}, {"a.wild.example", "[::ffff:192.168.0.1]:443", false},
		{"a.wild.example", "0.0.0.0:443", false}, {"a.wild.example", "[64:ff9b::127.0.0.1]:443", false},
		{"exact.example", "192.168.0.1:443", true}, {"EXACT.example.", "127.0.0.1:1", true},
		{"ported.example", "192.168.0.1:80", true}, {"ported.example", "192.168.0.1:81", false}, {"ported.example", "93.184.216.34:81", false},
		{"other.example", "93.184.216.34:443", false}, {"other.example", "10.1.2.3:443", false}, {"10.1.2.3", "10.1.2.3:443", true},
	} {
		if got := list.AllowsAt(c.host, netip.MustParseAddrPort(c.at)); got != c.want {
			t.Errorf("%s at %s: %v", c.host, c.at, got)
		}
	}
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::8.8.8.8": true, "172.32.0.1": true, "100.128.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "0.0.0.0": false, "0.1.2.3": false, "::": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false,
		"100.64.0.1": false, "100.127.255.255": false, "169.254.0.1": false, "fe80::1%1": false, "fd00::1": false, "fc00::1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::10.0.0.1": false, "168.63.129.16": false, "168.63.129.17": true, "192.0.0.192": false, "198.19.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "ff02::1": false, "2002:7f00:1::": false,
	} {
		if Public(netip.MustParseAddr(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}

func TestLinkLocal(t *testing.T) {
	for text, want := range map[string]bool{
		"169.254.169.254": true, "169.254.0.1": true, "::ffff:169.254.169.254": true, "64:ff9b::169.254.169.254": true, "fe80::1": true, "fe80::1%lo": true,
		"febf::1": true, "fd00:ec2::254": true, "fd00:ec2::23": true, "fd20:ce::254": true, "fd00:42::42": true, "168.63.129.16": true,
		"100.100.100.200": true, "192.0.0.192": true, "::ffff:168.63.129.16": true, "64:ff9b::168.63.129.16": true,
		"168.63.129.17": false, "100.100.100.100": false, "192.0.0.170": false,
		"169.253.0.1": false, "127.0.0.1": false, "10.0.0.1": false, "fd00:ec2::253": false, "fec0::1": false, "8.8.8.8": false,
	} {
		if LinkLocal(netip.MustParseAddr(text)) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}
