package egress

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestParseReach(t *testing.T) {
	for _, c := range []struct {
		text            string
		prefixes, hosts int
		ok              bool
	}{
		{"", 0, 0, true}, {"false", 0, 0, true}, {"true", len(Private), 0, true}, {"1", len(Private), 0, true},
		{"10.1.0.0/16", 1, 0, true}, {"10.1.0.0/16, ::1,chargers.internal", 2, 1, true},
		{"10.1.0.0/33", 0, 0, false}, {"http://x", 0, 0, false}, {"a,,b", 0, 0, false}, {"a:80", 0, 0, false},
	} {
		r, err := ParseReach(c.text)
		if (err == nil) != c.ok || err == nil && (len(r.Prefixes) != c.prefixes || len(r.Hosts) != c.hosts) {
			t.Errorf("%q: %+v, %v", c.text, r, err)
		}
	}
}

// Whatever an operator opens, the addresses at which clouds keep credentials stay shut.
func TestCheck_Never(t *testing.T) {
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, a := range []string{
		"169.254.169.254", "169.254.170.2", "::ffff:169.254.169.254", "fe80::1", "fe80::a9fe:a9fe%eth0", "fd00:ec2::254", "fd20:ce::254",
		"100.100.100.200", "::ffff:100.100.100.200", "168.63.129.16", "192.0.0.192",
	} {
		if err := check(netip.MustParseAddr(a), everything); err == nil {
			t.Errorf("%s is reached", a)
		}
	}

	for _, a := range []string{"10.0.0.1", "127.0.0.1", "::1", "fd00::1", "100.64.0.1"} {
		if err := check(netip.MustParseAddr(a), everything); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// What is opened is reached, by network or by name, and nothing beside it.
func TestDo_Reach(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())

	for _, c := range []struct {
		name   string
		opened Options
		host   string
		ok     bool
	}{
		{"the network", Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/24")}}, "127.0.0.1", true},
		{"another network", Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "127.0.0.1", false},
		{"the name", Options{Hosts: []string{"localhost"}}, "localhost", true},
		{"another name", Options{Hosts: []string{"chargers.internal"}}, "localhost", false},
		{"the name, asked for by its address", Options{Hosts: []string{"localhost"}}, "127.0.0.1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := New(c.opened)
			defer client.Close()

			_, err := client.Do(context.Background(), Request{Method: "POST", URL: "http://" + net.JoinHostPort(c.host, port)})
			refused, isRefused := errors.AsType[*Error](err)
			if (err == nil) != c.ok || isRefused && !refused.Refused {
				t.Errorf("%v", err)
			}

			if shut := client.CheckHost(c.host); (shut == nil) != c.ok {
				t.Errorf("CheckHost: %v", shut)
			}
		})
	}
}

func TestDo_ShutPorts(t *testing.T) {
	client := New(Options{Pipe: func(context.Context, string) (net.Conn, error) { t.Error("dialled"); return nil, net.ErrClosed }})
	defer client.Close()
	for _, port := range []string{"22", "25", "5432", "6379", "022", "00000000000000000022", "06379", "0", "000"} {
		want := "port " + cmp.Or(strings.TrimLeft(port, "0"), "0")
		if _, err := client.Do(t.Context(), Request{Method: "POST", URL: "https://example.com:" + port + "/"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("port %s: %v", port, err)
		}
	}
}
