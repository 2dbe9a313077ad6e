package app_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

var metersFlag = flag.Int("meters", 1_000_000, "metering points of BenchmarkMeters")

// BenchmarkMeters imports metering points, fifteen to a postcode, as the operator does, and
// looks postcodes up at random, as the interface does: with sealed references. It reports the
// seconds of the import and the milliseconds of a look-up.
func BenchmarkMeters(b *testing.B) {
	for _, e := range []struct {
		name string
		open func(testing.TB) string
	}{{"sqlite", storetest.SQLite}, {"postgres", storetest.Postgres}} {
		b.Run(e.name, func(b *testing.B) { benchMeters(b, e.open(b)) })
	}
}

// postcodeOf is the postcode of the nth fifteen points.
func postcodeOf(n int) string {
	const inward = "ABDEFGHJLNPQRSTUWXYZ"
	k := n % 4000
	return fmt.Sprintf("%c%c%d %d%c%c", 'A'+n/4000/90%20, 'A'+n/4000/1800%8, 10+n/4000%90, k%10, inward[k/10%20], inward[k/200%20])
}

func benchMeters(b *testing.B, database string) {
	h, err := app.Open(b.Context(), app.Settings{Database: database, Keys: storetest.Keys(b), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	var file bytes.Buffer
	file.WriteString("mpan,direction,address,postcode,uprn,energised,half_hourly_settled,domestic,supplier_mpid,supplier_name,gsp_group\n")

	for i := range *metersFlag {
		fmt.Fprintf(&file, "%s,import,\"%d High Street, Town\",%s,%d,true,true,true,DEMO,Demo Supplier,_C\n", mpanOf(i), i%15+1, postcodeOf(i/15), i)
	}
	start := time.Now()
	if _, err := h.ImportMeters(b.Context(), &file, nil); err != nil {
		b.Fatal(err)
	}

	imported := time.Since(start).Seconds()
	random := rand.New(rand.NewPCG(1, 1))
	var took []time.Duration
	for b.Loop() {
		for range 1000 {
			start := time.Now()
			found, err := h.Directory.Search(b.Context(), flex.OrgID{1}, postcodeOf(random.IntN(*metersFlag/15)), "")
			if took = append(took, time.Since(start)); err != nil || len(found) == 0 {
				b.Fatalf("found %d, %v", len(found), err)
			}
		}
	}

	slices.Sort(took)
	b.ReportMetric(imported, "import-s")
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
}

// mpanOf is the nth number of a distributor, with its check digit.
func mpanOf(n int) string {
	core := fmt.Sprintf("10%010d", n+1)
	sum := 0
	for i, w := range []int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43} {
		sum += int(core[i]-'0') * w
	}
	return fmt.Sprintf("%s%d", core, sum%11%10)
}
