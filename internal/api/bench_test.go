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
	addr, token      string
	username, secret string
	access           *access.Service
	sites            []flex.Site
	assets           []flex.Asset
}

func newFleet(b *testing.B, sites int) *fleet {
	b.Helper()
	db := storetest.Open(b, storetest.SQLite(b), store.Options{Environment: flex.Production})
	s := &api.Server{Access: &access.Service{DB: db}, Registry: &registry.Service{DB: db}, Log: quiet, RequestsPerSecond: 1e6}
	o, secret, err := s.Access.AddOrg(b.Context(), "Acme", "acme", "")
	if err != nil {
		b.Fatal(err)
	}
	t, err := s.Access.Login(b.Context(), "acme", secret, "")
	if err != nil {
		b.Fatal(err)
	}

	f := &fleet{B: b, token: t.Token.Reveal(), username: "acme", secret: secret.Reveal(), access: s.Access}
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
	f.ResetTimer()
	began, spent := time.Now(), cpuTime()
	all := f.send(connections, f.N, path)
	took := time.Since(began)
	spent = cpuTime() - spent
	f.StopTimer()
	if len(all) > 0 {
		f.ReportMetric(float64(len(all))/took.Seconds(), "requests/s")
		f.ReportMetric(p99(all), "p99-µs")
		f.ReportMetric(float64(spent.Microseconds())/float64(len(all)), "cpu-µs/op")
	}
}

// send sends n requests and returns how long each took.
func (f *fleet) send(connections, n int, path func(i int) string) []time.Duration {
	f.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	times := make([][]time.Duration, connections)

	for k := range connections {
		wg.Go(func() {
			c := f.dial()
			defer c.Close()
			in := bufio.NewReaderSize(c, 64<<10)

			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
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
	return slices.Concat(times...)
}

// p99 is the 99th percentile in microseconds; the times are sorted.
func p99(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)*99/100].Nanoseconds()) / 1e3
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

// BenchmarkGetAsset_Logins reads assets by two clients, by turns alone and while others log in
// a hundred times a second, and reports both slowest hundredths and their ratio. The turns
// are short, so that what else the machine does falls on both alike. The secrets are ones that
// flexd made, and ones that a person chose.
func BenchmarkGetAsset_Logins(b *testing.B) {
	for _, kind := range []string{"made", "chosen"} {
		b.Run(kind, func(b *testing.B) {
			f := newFleet(b, 1000)
			if kind == "chosen" {
				if _, _, err := f.access.AddOrg(b.Context(), "Person", "person", "correct horse battery"); err != nil {
					b.Fatal(err)
				}
				f.username, f.secret = "person", "correct horse battery"
			}

			const turn = 2000 // requests
			path := func(i int) string { return "/entities/asset/" + f.assets[i*7919%len(f.assets)].ID.String() }
			var alone, beside []time.Duration
			var besides time.Duration
			var logins atomic.Int64
			f.send(2, turn, path)
			f.logInOnce(&logins)
			b.ResetTimer()

			for left := b.N; left > 0; left -= turn {
				alone = append(alone, f.send(2, turn, path)...)
				stop := f.logIn(100, &logins)
				began := time.Now()
				beside = append(beside, f.send(2, turn, path)...)
				stop()
				besides += time.Since(began)
			}

			b.StopTimer()
			quiet, busy := p99(alone), p99(beside)
			b.ReportMetric(quiet, "p99-alone-µs")
			b.ReportMetric(busy, "p99-logins-µs")
			b.ReportMetric(busy/quiet, "p99-ratio")
			b.ReportMetric(float64(logins.Load())/besides.Seconds(), "logins/s")
		})
	}
}

// logIn logs in at a rate until it is stopped, and counts.
func (f *fleet) logIn(rate int, done *atomic.Int64) (stop func()) {
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()

		for {
			select {
			case <-end:
				return
			case <-tick.C:
				wg.Go(func() { f.logInOnce(done) })
			}
		}
	})

	return func() {
		close(end)
		wg.Wait()
	}
}

func (f *fleet) logInOnce(done *atomic.Int64) {
	res, err := http.PostForm("http://"+f.addr+"/auth/token-form", url.Values{"username": {f.username}, "password": {f.secret}})
	if err != nil {
		f.Error(err)
		return
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		f.Errorf("login: %d", res.StatusCode)
		return
	}
	done.Add(1)
}
