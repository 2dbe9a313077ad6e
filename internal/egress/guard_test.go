package egress

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

// forbidden are addresses that must not be reached, at the edges of their blocks too.
var forbidden = strings.Fields(`
	0.0.0.0 0.1.2.3 0.255.255.255 10.0.0.0 10.1.2.3 10.255.255.255 100.64.0.0 100.64.0.1 100.100.100.200
	100.127.255.255 127.0.0.0 127.0.0.1 127.1.2.3 127.255.255.255 169.254.0.0 169.254.169.254 169.254.170.2
	169.254.255.255 172.16.0.0 172.20.1.1 172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.192
	192.0.2.0 192.0.2.1 192.0.2.255 192.88.99.0 192.88.99.1 192.88.99.255 192.168.0.0 192.168.1.1
	192.168.255.255 198.18.0.0 198.18.0.1 198.19.255.255 198.51.100.0 198.51.100.7 203.0.113.0 203.0.113.9
	224.0.0.0 224.0.0.1 239.255.255.250 240.0.0.0 240.0.0.1 255.255.255.254 255.255.255.255
	:: ::1 ::2 ::127.0.0.1 ::ffff:0.0.0.0 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:10.8.8.8%eth0
	  ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 64:ff9b:1::7f00:1
	100::1 100:0:0:1::1 2001::1 2001:0:53aa:64c::1 2001:10::1 2001:20::1 2001:2::1 2001:1ff::1
	2001:db8::1 2001:db8:ffff::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:808:808::1 3fff::1 3fff:fff::1
	5f00::1 fc00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 feff::1 ff01::1 ff02::1
	ff05::2 ffff::1`)

var public = strings.Fields(`
	1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
	169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255
	192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 203.0.112.255
	203.0.114.0 223.255.255.255 ::ffff:1.1.1.1 2001:200::1 2001:470::1 2001:db7::1 2003::1 2606:4700::1111
	2a00:1450::1 2620:fe::fe 3ffe::1 3fff:1000::1`)

func TestCheck(t *testing.T) {
	if len(forbidden) < 60 {
		t.Errorf("only %d addresses", len(forbidden))
	}

	for _, s := range forbidden {
		a := netip.MustParseAddr(s)
		if s == " " { // the zone of a mapped address is no way in: it is dropped
			a = netip.MustParseAddr("::ffff:10.8.8.8%eth0")
		}

		if check(a, nil) == nil {
			t.Errorf("%s passes", s)
		}

		if a.Is4() && check(netip.AddrFrom16(a.As16()), nil) == nil {
			t.Errorf("%s passes when mapped into IPv6", s)
		}
	}

	for _, s := range public {
		if err := check(netip.MustParseAddr(s), nil); err != nil {
			t.Error(err)
		}
	}
}

func TestCheck_Private(t *testing.T) {
	for s, open := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.0.0.1": true, "192.168.1.1": true, "172.16.0.1": true, "100.64.0.1": true, "fd00::1": true,
		"::ffff:127.0.0.1": true, "169.254.169.254": false, "fe80::1": false, "224.0.0.1": false, "0.0.0.0": false, "64:ff9b::7f00:1": false,
	} {
		if err := check(netip.MustParseAddr(s), Private); (err == nil) != open {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// Every way to name a forbidden address ends at the guard, before a packet leaves.
func TestDo_Refused(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // no proxy is asked
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")

	for _, s := range forbidden {
		literal := s
		if a := netip.MustParseAddr(s); a.Is6() {
			literal = "[" + strings.ReplaceAll(s, "%", "%25") + "]"
		}

		c := New(Options{Resolver: names(func(int32) string { return s })})
		for _, host := range []string{literal, "rebound.example"} {
			_, err := c.Do(t.Context(), Request{Method: "POST", URL: "http://" + host + ":9/"})
			var e *Error
			if !errors.As(err, &e) || !e.Refused && !strings.Contains(s, "%") {
				t.Errorf("%s as %s: %v", s, host, err)
			}
		}

		c.Close()
	}
}

// Ways of writing 127.0.0.1 that some resolvers understand.
func TestDo_RefusedSpellings(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer inner.Close()
	port := inner.URL[strings.LastIndex(inner.URL, ":"):]
	c := New(Options{})
	defer c.Close()

	for _, host := range strings.Fields(`127.0.0.1 localhost LOCALHOST localhost. [::1] [::ffff:127.0.0.1] [0:0:0:0:0:ffff:7f00:1]
		0177.0.0.1 0x7f.0.0.1 0x7f000001 2130706433 127.1 127.0.1 0 0.0.0.0 [::] ①②⑦.0.0.1 user@127.0.0.1`) {
		if _, err := c.Do(t.Context(), Request{Method: "GET", URL: "http://" + host + port}); err == nil {
			t.Errorf("%s was reached", host)
		}
	}
}

// A name that points to a public address when it is looked at, and inside when it is used.
func TestDo_Rebinding(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer inner.Close()
	var asked atomic.Int32
	c := New(Options{Resolver: names(func(n int32) string {
		asked.Store(n)
		if n == 1 {
			return "1.1.1.1"
		}
		return "127.0.0.1"
	})})

	defer c.Close()

	ctx := t.Context()
	if ips, err := names(func(int32) string { return "1.1.1.1" }).LookupHost(ctx, "rebound.example"); err != nil || len(ips) == 0 || ips[0] != "1.1.1.1" {
		t.Fatalf("the false name server answers %v, %v", ips, err)
	}

	if err := c.CheckHost("rebound.example"); err != nil {
		t.Fatal(err)
	}

	asked.Store(1)

	_, err := c.Do(ctx, Request{Method: "POST", URL: "http://rebound.example" + inner.URL[strings.LastIndex(inner.URL, ":"):]})
	if err == nil {
		t.Error("reached")
	}
}

func TestDo_Redirect(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("followed") }))
	defer inner.Close()

	for _, code := range []int{301, 302, 303, 307, 308} {
		front := httptest.NewServer(http.RedirectHandler(inner.URL, code))
		c := New(Options{Allow: Private})
		a, err := c.Do(t.Context(), Request{Method: "POST", URL: front.URL, Body: []byte("x")})
		if err != nil || a.Status != code {
			t.Errorf("%d: got %v, %v", code, a.Status, err)
		}

		c.Close()
		front.Close()
	}
}

func TestCheckHost(t *testing.T) {
	c := New(Options{})
	for _, host := range strings.Fields(`127.0.0.1 [::1] ::1 localhost Localhost. api.localhost 10.0.0.1 169.254.169.254`) {
		if c.CheckHost(host) == nil {
			t.Errorf("%s passes", host)
		}
	}

	for _, host := range strings.Fields(`example.com 1.1.1.1 2606:4700::1111 localhost.example.com`) {
		if err := c.CheckHost(host); err != nil {
			t.Error(err)
		}
	}

	if err := New(Options{Allow: Private}).CheckHost("localhost"); err != nil {
		t.Error(err)
	}
}

// names returns a resolver that gives every name the address that answer returns for the
// n-th question, counted from 1.
func names(answer func(n int32) string) *net.Resolver {
	var asked atomic.Int32
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()

			for {
				var size [2]byte
				if _, err := io.ReadFull(there, size[:]); err != nil {
					return
				}

				q := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(there, q); err != nil {
					return
				}

				a := netip.MustParseAddr(answer(asked.Add(1))).WithZone("")
				reply := dnsAnswer(q, a)
				there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
			}
		}()

		return here, nil
	}}
}

// dnsAnswer answers a DNS question with the address, if it is of the kind asked for.
func dnsAnswer(q []byte, a netip.Addr) []byte {
	end := 12
	for q[end] != 0 {
		end += int(q[end]) + 1
	}

	end += 5 // the root label, type and class
	kind := binary.BigEndian.Uint16(q[end-4:])
	r := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)

	if kind == 1 && a.Is4() || kind == 28 && a.Is6() {
		r[7] = 1
		r = append(r, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
		r = append(r, a.AsSlice()...)
	}

	return r
}
