package sim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// benchEach runs the benchmark on SQLite and, where a server is named, on PostgreSQL.
func benchEach(b *testing.B, run func(b *testing.B, l *line)) {
	b.Run("sqlite", func(b *testing.B) { run(b, start(b, storetest.SQLite(b), evening)) })
	if os.Getenv(storetest.Env) != "" {
		b.Run("postgres", func(b *testing.B) { run(b, start(b, storetest.Postgres(b), evening)) })
	}
}

// mpan returns a valid MPAN of a serial number.
func mpan(serial int) string {
	core := fmt.Sprintf("10%010d", serial)
	sum := 0
	for i, w := range []int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43} {
		sum += w * int(core[i]-'0')
	}
	return core + string(rune('0'+sum%11%10))
}

// fleet of n chargers, a hundred a site.
func (l *line) chargers(n int) (assets []client.AssetID) {
	l.Helper()
	var meters strings.Builder
	meters.WriteString("mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n")
	for i := range (n + 99) / 100 {
		fmt.Fprintf(&meters, "%s,import,%d Long Road,SW1A 1AA,true,true,true\n", mpan(i+1), i+1)
	}
	_, err := l.app.ImportMeters(l.Context(), strings.NewReader(meters.String()), nil)
	l.must(err)

	for i := 0; len(assets) < n; i++ {
		in := onboarding(mpan(i+1), client.PropositionFullAssetSchedule)
		in.Site.StreetAddress = fmt.Sprintf("%d Long Road", i+1)
		in.Assets = nil
		for j := range min(100, n-len(assets)) {
			kw := 7.4
			in.Assets = append(in.Assets, client.OnboardingAssetRequest{
				ExternalID: fmt.Sprintf("c%d-%d", i, j), Type: client.AssetCharger, Properties: &client.AssetProperties{PowerKW: &kw},
			})
		}

		r, err := l.client.Onboard(l.Context(), in)
		l.must(err)
		for _, a := range r.Assets {
			assets = append(assets, a.AssetID)
		}
	}
	return assets
}

// BenchmarkPlugInToPush sends plug-ins at a fixed rate, whether or not earlier ones are
// answered, for six seconds, which is one operation. It measures from the moment each should
// have been sent to the arrival of its charging profile at the client's endpoint. The first
// second does not count: it opens the connections to PostgreSQL and prepares their statements.
func BenchmarkPlugInToPush(b *testing.B) {
	for _, rate := range []int{200, 500} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			benchEach(b, func(b *testing.B, l *line) { plugInToPush(b, l, rate) })
		})
	}
}

func plugInToPush(
	b *testing.B,
	l *line,
	rate int,
) {
	const seconds, warm = 6, 1
	assets := l.chargers(rate * seconds)
	l.prices(nil)
	var mu sync.Mutex
	arrived := map[string]time.Time{}
	all := make(chan struct{})

	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, again := arrived[r.URL.Path[1:]]; !again {
			arrived[r.URL.Path[1:]] = time.Now()
			if len(arrived) == len(assets) {
				close(all)
			}
		}
	}))

	b.Cleanup(sink.Close)
	_, err := l.client.SetEndpoint(b.Context(), client.EndpointRequest{URL: sink.URL + "/{asset_id}"})
	l.must(err)
	l.client.HTTP.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	l.must(l.client.UpdateTariff(b.Context(), assets[0], tariffUTC())) // the token is there
	sent := make([]time.Time, len(assets))
	begin := time.Now().Add(50 * time.Millisecond)
	var wg sync.WaitGroup

	for i, a := range assets {
		sent[i] = begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		wg.Go(func() {
			time.Sleep(time.Until(sent[i]))
			if err := l.client.PlugIn(b.Context(), a, client.PlugInEventRequest{
				Tariff: &client.Tariff{OffPeakTimes: "00:00-05:30, 23:30-24:00", Timezone: "Europe/London"},
			}); err != nil {
				b.Error(err)
			}
		})
	}

	wg.Wait()
	<-all
	took := make([]time.Duration, len(assets))
	for i, a := range assets {
		took[i] = arrived[a.String()].Sub(sent[i])
	}
	quantiles(b, took[warm*rate:])
	b.ReportMetric(0, "ns/op")
}

// quantiles reports the median and the 99th percentile in milliseconds.
func quantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
}

// BenchmarkGetAsset asks for one asset over and over, with 16 clients at once.
func BenchmarkGetAsset(b *testing.B) {
	benchEach(b, func(b *testing.B, l *line) {
		assets := l.chargers(100)
		l.client.HTTP.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
		_, err := l.client.Asset(b.Context(), assets[0])
		l.must(err)
		b.SetParallelism(8)
		b.ResetTimer()

		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := l.client.Asset(b.Context(), assets[i%len(assets)]); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
}

// BenchmarkReadings1000 posts batches of 1,000 half-hours, with 4 clients at once.
func BenchmarkReadings1000(b *testing.B) {
	benchEach(b, func(b *testing.B, l *line) {
		assets := l.chargers(1000)
		l.client.HTTP.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
		var mu sync.Mutex
		next := 0
		b.ResetTimer()
		b.SetParallelism(2)

		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				mu.Lock()
				n := next
				next++
				mu.Unlock()
				at := evening.Add(-time.Duration(n%15000+2) * flex.HalfHour)
				batch := make([]client.ReadingDataPoint, len(assets))

				for i, a := range assets {
					batch[i] = client.ReadingDataPoint{AssetID: a, StartTimestamp: client.At(at), EndTimestamp: client.At(at.Add(flex.HalfHour)),
						Value: float64(i%70) / 10, Label: client.LabelChargerEnergy}
				}
				if r, err := l.client.PostReadings(b.Context(), batch); err != nil || !r.Responses[0].Accepted {
					b.Errorf("%v %+v", err, r)
				}
			}
		})

		b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "readings/s")
	})
}
