package dial

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/hosts"
)

func tcp(t *testing.T, text string) net.Addr {
	t.Helper()
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))
}

// refusedBy returns the rule that refused a connection, or "".
func refusedBy(err error) string {
	if e, is := errors.AsType[*RefusedError](err); is {
		return e.Rule
	}
	return ""
}

func TestOwnListeners(t *testing.T) {
	for _, c := range []struct {
		own, to string
		want    bool
	}{
		{"127.0.0.1:9090", "127.0.0.1:9090", true}, {"127.0.0.1:9090", "[::ffff:127.0.0.1]:9090", true}, {"127.0.0.1:9090", "0.0.0.0:9090", true},
		{"127.0.0.1:9090", "[::]:9090", true}, {"127.0.0.1:9090", "[64:ff9b::127.0.0.1]:9090", true}, {"[::1]:9090", "[::1]:9090", true},
		{"[::ffff:127.0.0.1]:9090", "127.0.0.1:9090", true}, {"10.0.0.5:9090", "10.0.0.5:9090", true}, {"[fe80::5%eth0]:9090", "[fe80::5%eth1]:9090", true},
		{"127.0.0.1:9090", "127.0.0.1:11434", false}, {"127.0.0.1:9090", "127.0.0.2:9090", false}, {"10.0.0.5:9090", "10.0.0.6:9090", false},
		{"10.0.0.5:9090", "0.0.0.0:9090", false},
		{"0.0.0.0:9090", "127.0.0.1:9090", true}, {"0.0.0.0:9090", "127.8.8.8:9090", true}, {"[::]:9090", "127.0.0.1:9090", true}, {"[::]:9090", "[::1]:9090", true},
		{"[::]:9090", "0.0.0.0:9090", true}, {"0.0.0.0:9090", "192.0.2.1:9090", false}, {"0.0.0.0:9090", "127.0.0.1:9091", false},
	} {
		var own Listeners
		own.Set(tcp(t, c.own))
		if err := (Guard{Own: &own}).check("host", netip.MustParseAddrPort(c.to)); (err != nil) != c.want {
			t.Errorf("%s while listening on %s: %v", c.to, c.own, err)
		}
	}
}

// TestListenersOnEveryInterface: a listener on every interface is at each address of this machine.
func TestListenersOnEveryInterface(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil || len(addrs) == 0 {
		t.Skipf("no interfaces: %v", err)
	}
	var own Listeners
	own.Set(tcp(t, "[::]:9090"))
	for _, a := range addrs {
		ip, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if err := (Guard{Own: &own}).check("host", netip.AddrPortFrom(ip, 9090)); err == nil {
			t.Errorf("%s is not refused", ip)
		}
	}
}

func TestRules(t *testing.T) {
	var own Listeners
	own.Set(tcp(t, "127.0.0.1:9090"), tcp(t, "0.0.0.0:8080"))
	only := hosts.NewList([]string{"*.wild.example", "exact.example", "127.0.0.0/8", "169.254.169.254"})
	operator, team := Guard{Own: &own}, Guard{Own: &own, Only: &only}
	for _, c := range []struct {
		guard    Guard
		host, at string
		want     string
	}{
		{operator, "ollama", "127.0.0.1:11434", ""}, {operator, "any", "10.0.0.1:80", ""}, {operator, "any", "8.8.8.8:80", ""},
		{operator, "any", "169.254.169.254:80", ruleLinkLocal}, {operator, "any", "[fd00:ec2::254]:80", ruleLinkLocal},
		{operator, "any", "127.0.0.1:9090", ruleOwn}, {operator, "any", "127.0.0.1:8080", ruleOwn},
		{team, "a.wild.example", "8.8.8.8:80", ""}, {team, "exact.example", "10.0.0.1:80", ""}, {team, "a.wild.example", "127.0.0.1:80", ""},
		{team, "a.wild.example", "10.0.0.1:80", rulePrivate}, {team, "other.example", "8.8.8.8:80", rulePrivate},
		{team, "exact.example", "127.0.0.1:9090", ruleOwn}, {team, "127.0.0.1", "127.0.0.1:8080", ruleOwn}, // even if they are in the list
		{team, "169.254.169.254", "169.254.169.254:80", ruleLinkLocal},
		{Guard{}, "any", "127.0.0.1:9090", ""}, {Guard{}, "any", "169.254.0.1:1", ruleLinkLocal},
	} {
		if got := refusedBy(c.guard.check(c.host, netip.MustParseAddrPort(c.at))); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.host, c.at, got, c.want)
		}
	}
}

// TestResolvedAddressIsChecked: the check sees the address that a name resolves to, and a host outside the list is not resolved.
func TestResolvedAddressIsChecked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var own Listeners
	none, named, wild := hosts.List{}, hosts.NewList([]string{"localhost"}), hosts.NewList([]string{"*.localhost"})
	dial := func(g Guard, host string) string {
		conn, err := g.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
			return ""
		}
		return refusedBy(err)
	}
	for i, want := range []string{"", ruleOwn} {
		if i > 0 {
			own.Set(server.Listener.Addr())
		}
		for _, g := range []Guard{{Own: &own}, {Own: &own, Only: &named}} {
			if got := dial(g, "localhost"); got != want {
				t.Errorf("refused by %q, want %q", got, want)
			}
		}
	}
	if got := dial(Guard{Only: &none}, "localhost"); got != ruleHost {
		t.Errorf("a host outside the list: %q", got)
	}
	if got := dial(Guard{Only: &wild}, "localhost"); got != ruleHost {
		t.Errorf("the domain of a wildcard: %q", got)
	}
}

// TestProxiedDestinations: if the environment names a proxy, a destination that is an IP address is still checked.
func TestProxiedDestinations(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:3128") // the environment is read once in a process, and only here
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	var own Listeners
	own.Set(tcp(t, "10.0.0.5:9090"))
	only := hosts.NewList([]string{"llm.example"})
	for target, want := range map[string]string{
		"http://llm.example/": "", "http://10.0.0.6/": "", "http://169.254.169.254/": ruleLinkLocal, "http://10.0.0.5:9090/": ruleOwn,
	} {
		u, _ := url.Parse(target)
		via, err := Guard{Own: &own}.Proxy(&http.Request{URL: u})
		if refusedBy(err) != want || (via != nil) != (want == "") {
			t.Errorf("%s: via %v, %v", target, via, err)
		}
		team := Guard{Only: &only}
		if via, err := team.Proxy(&http.Request{URL: u}); via != nil || err != nil {
			t.Errorf("%s: a guard with a list uses a proxy: %v, %v", target, via, err)
		}
		if err := team.Permits(u); (err == nil) != strings.Contains(target, "llm.example") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
