package app_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// heapMost is what may live on the heap while a request of a million readings, or their
// answer, runs through: each is some 200 MB.
const heapMost = 64 << 20

// One request of readings is kept and answered in memory that does not grow with it, a
// verdict each, in order; gzipped too. With FLEXD_LONG set it has the million that one
// request may have.
func TestReadings_OneLongRequest(t *testing.T) {
	n := 8_000 // more than is held in memory
	if os.Getenv("FLEXD_LONG") != "" {
		n = wire.MaxReadings
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		base, token, assets := fleet(t, url)

		for _, packed := range []bool{false, true} {
			defer debug.SetGCPercent(debug.SetGCPercent(20))
			s := sending{t: t, assets: assets, last: flex.PeriodAt(time.Now()).Add(-2)}
			stop := make(chan struct{})
			peak := watchHeap(stop)
			began := time.Now()
			s.send(base, token, n, packed)

			took := time.Since(began)
			close(stop)
			most := <-peak
			t.Logf("%d readings, gzip %t: %v, %.0f readings/s, at most %d MiB of heap", n, packed, took.Round(time.Millisecond), float64(n)/took.Seconds(), most>>20)
			if most > heapMost {
				t.Errorf("the heap grew to %d MiB, at most %d are right", most>>20, heapMost>>20)
			}
		}
	})
}

// watchHeap returns the most that lived on the heap, as the collector found it, until it is
// stopped. Garbage that was not collected yet does not count: how much there is depends on how
// fast the machine is.
func watchHeap(stop <-chan struct{}) <-chan uint64 {
	runtime.GC()
	most := make(chan uint64, 1)
	go func() {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		peak := uint64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()

		for {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-stop:
				most <- peak
				return
			case <-tick.C:
			}
		}
	}()
	return most
}

// sending is one request of many readings.
type sending struct {
	t      *testing.T
	assets []flex.AssetID
	last   flex.Period
}

// reading returns the i-th reading, and whether it is to be accepted.
func (s *sending) reading(i int) (asset flex.AssetID, p flex.Period, value float64, good bool) {
	value = float64(i%7) + 0.25
	if good = i%997 != 5; !good {
		value = -1
	}
	return s.assets[i%len(s.assets)], s.last.Add(-i / len(s.assets)), value, good
}

func (s *sending) write(to io.Writer, n int, packed bool) error {
	if packed {
		z := gzip.NewWriter(to)
		defer z.Close()
		to = z
	}
	w := bufio.NewWriter(to)
	sep := `{"readings":[`

	for i := range n {
		asset, p, value, _ := s.reading(i)
		fmt.Fprintf(w, `%s{"asset_id":"%s","start_timestamp":"%s","end_timestamp":"%s","value":%g,"label":"charger_consumption_energy_kwh"}`,
			sep, asset, p.Start().Format(time.RFC3339), p.End().Format(time.RFC3339), value)
		sep = ","
	}
	w.WriteString("]}")
	return w.Flush()
}

// send sends n readings in one request and checks the verdicts as they come.
func (s *sending) send(base, token string, n int, packed bool) {
	s.t.Helper()
	body, to := io.Pipe()
	go func() { to.CloseWithError(s.write(to, n, packed)) }()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", base+"/data/readings", body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if packed {
		r.Header.Set("Content-Encoding", "gzip")
	}

	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(a.Body)
		s.t.Fatalf("%s %s", a.Status, b)
	}

	d := json.NewDecoder(a.Body)
	for _, want := range []any{json.Delim('{'), "responses", json.Delim('[')} {
		if got, err := d.Token(); err != nil || got != want {
			s.t.Fatalf("the answer begins with %v, %v, want %v", got, err, want)
		}
	}

	for i := 0; d.More(); i++ {
		var v wire.ReadingResponse
		if err := d.Decode(&v); err != nil {
			s.t.Fatal(err)
		}

		asset, p, _, good := s.reading(i)
		if v.AssetID != asset || !v.StartTimestamp.Equal(p.Start()) || v.Accepted != good || (v.Error == "") != good {
			s.t.Fatalf("verdict %d is %+v", i, v)
		}
		if n--; n < 0 {
			s.t.Fatal("more verdicts than readings")
		}
	}

	if n > 0 {
		s.t.Errorf("%d readings have no verdict", n)
	}
}
