package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/api"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fleet is a server over real sockets with an organisation of many sites.
type fleet struct {
	*testing.B
	addr, token, secret string
	sites               []flex.Site
	assets              []flex.Asset
}

func newFleet(b *testing.B, sites int) *fleet {
	b.Helper()
	db := storetest.Open(b, storetest.SQLite(b), store.Options{Environment: flex.Production})
	s := &api.Server{DB: db, Access: &access.Desk{DB: db}, Registry: &registry.Desk{DB: db}, Log: quiet, RequestsPerSecond: 1e6}
	o, secret, err := s.Access.AddOrg(b.Context(), "Acme", "acme", "")
	if err != nil {
		b.Fatal(err)
	}
	t, err := s.Access.Login(b.Context(), "acme", secret, "")
	if err != nil {
		b.Fatal(err)
	}
	f := &fleet{B: b, token: t.Token.Reveal(), secret: secret.Reveal()}
	err = db.Write(b.Context(), o.ID, func(tx *store.Tx) error {
		for i := range sites {
			site := flex.Site{MPAN: flex.Personal(mpan(i)), Postcode: "SW1A 2AA", Address: flex.Personal(fmt.Sprint(i, " Bench Street"))}
			if err := tx.AddSite(b.Context(), &site, fmt.Sprint(i)); err != nil {
				return err
			}
			asset := flex.Asset{SiteID: site.ID, ExternalID: fmt.Sprint(i), Type: flex.Charger, Power: new(flex.Watts(7400))}
			if err := tx.AddAsset(b.Context(), &asset); err != nil {
				return err
			}
			if err := tx.AddMethod(b.Context(), site.ID, flex.FullScheduleMethod); err != nil {
				return err
			}
			f.sites, f.assets = append(f.sites, site), append(f.assets, asset)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: s.Handler()}
	go server.Serve(l)
	b.Cleanup(func() { server.Close() })
	f.addr = l.Addr().String()
	return f
}

// load sends b.N requests over connections that are kept, and reports the rate and the
// slowest hundredth. path gives the i-th request's.
func (f *fleet) load(connections int, path func(i int) string) {
	f.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	times := make([][]time.Duration, connections)
	f.ResetTimer()
	began, spent := time.Now(), cpuTime()
	for k := range connections {
		wg.Go(func() {
			c := f.dial()
			defer c.Close()
			in := bufio.NewReaderSize(c, 64<<10)
			for i := int(next.Add(1)); i <= f.N; i = int(next.Add(1)) {
				start := time.Now()
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path(i), f.token)
				if err := skipAnswer(in); err != nil {
					f.Error(err)
					return
				}
				times[k] = append(times[k], time.Since(start))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	spent = cpuTime() - spent
	f.StopTimer()
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) > 0 {
		f.ReportMetric(float64(len(all))/took.Seconds(), "requests/s")
		f.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
		f.ReportMetric(float64(spent.Microseconds())/float64(len(all)), "cpu-µs/op")
	}
}

// cpuTime is what this process has used of all processors, generator and server together.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (f *fleet) dial() net.Conn {
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// skipAnswer reads an answer that is 200, by the little that a generator needs to know.
func skipAnswer(in *bufio.Reader) error {
	status, err := in.ReadString('\n')
	if err != nil || !strings.HasPrefix(status, "HTTP/1.1 200") {
		return fmt.Errorf("%q %w", status, err)
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err := in.Discard(length)
			return err
		}
		if line[0] == 'C' && strings.HasPrefix(string(line), "Content-Length: ") {
			fmt.Sscan(string(line[16:]), &length)
		}
	}
}

// BenchmarkGetAsset reads assets one by one, 16 clients at once.
func BenchmarkGetAsset(b *testing.B) {
	f := newFleet(b, 10_000)
	f.load(16, func(i int) string { return "/entities/asset/" + f.assets[i*7919%len(f.assets)].ID.String() })
}

// BenchmarkListSites_Filtered reads pages of 100 sites of a postcode, which are not remembered.
func BenchmarkListSites_Filtered(b *testing.B) {
	f := newFleet(b, 10_000)
	f.load(16, func(i int) string {
		return fmt.Sprintf("/entities/site?postcode=SW1A2AA&limit=100&offset=%d", i%10*100)
	})
}

// BenchmarkListSites reads pages of 100 sites, 16 clients at once, while nothing is registered.
func BenchmarkListSites(b *testing.B) {
	f := newFleet(b, 10_000)
	f.load(16, func(i int) string { return fmt.Sprintf("/entities/site?limit=100&offset=%d", i%10*100) })
}

// BenchmarkGetAsset_Logins is BenchmarkGetAsset at a tenth of its clients, while others log
// in a hundred times a second.
func BenchmarkGetAsset_Logins(b *testing.B) {
	for _, logins := range []int{0, 100} {
		b.Run(fmt.Sprint(logins), func(b *testing.B) {
			f := newFleet(b, 1000)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			if logins > 0 {
				wg.Go(func() {
					tick := time.NewTicker(time.Second / time.Duration(logins))
					defer tick.Stop()
					for {
						select {
						case <-stop:
							return
						case <-tick.C:
							res, err := http.PostForm("http://"+f.addr+"/auth/token-form", url.Values{"username": {"acme"}, "password": {f.secret}})
							if err != nil {
								b.Error(err)
								return
							}
							io.Copy(io.Discard, res.Body)
							res.Body.Close()
						}
					}
				})
			}
			f.load(2, func(i int) string { return "/entities/asset/" + f.assets[i*7919%len(f.assets)].ID.String() })
			close(stop)
			wg.Wait()
		})
	}
}
