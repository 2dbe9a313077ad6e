package sums_test

import (
	"fmt"
	"math/big"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A day's sessions of one organisation, each of one half-hour of another energy at a rate that makes fractions of a
// penny: each is rounded by itself, and the sum is theirs to the penny. FLEXD_SESSIONS sets how many; -v tells the
// processor time of each in its settlement.
func TestSums_ManySessions(t *testing.T) {
	many := 1_000
	if text := os.Getenv("FLEXD_SESSIONS"); text != "" {
		many, _ = strconv.Atoi(text)
	}
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2025, 6, 13, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &reward.Service{DB: db}
		if _, err := service.SetTerms(t.Context(), seed.Org, map[string]string{"credit_pence_per_kwh": "3.337"}, flex.Day{}, "test"); err != nil {
			t.Fatal(err)
		}

		site := seed.Site()
		id := func(kind byte, i int) []byte {
			id := make([]byte, 16)
			id[0], id[1], id[14], id[15] = 0x70, kind, byte(i>>8), byte(i)
			return id
		}
		energy := func(i int) int64 { return int64(i) * 7919 % 3_600 }
		from := time.Date(2025, 6, 11, 18, 0, 0, 0, time.UTC)
		seed.Rows("asset", []string{"id", "org_id", "site_id", "external_id", "type", "power_w", "created_at"}, many, func(i int) []any {
			return []any{id(1, i), seed.Org.Bytes(), site.Bytes(), fmt.Sprint("car ", i), "electric_vehicle", 7400, 0}
		})

		seed.Rows("session", []string{"id", "org_id", "asset_id", "site_id", "number", "plugged_in_at", "plugged_out_at", "generation"}, many, func(i int) []any {
			return []any{id(2, i), seed.Org.Bytes(), id(1, i), site.Bytes(), 1, from.UnixMicro(), from.Add(30 * time.Minute).UnixMicro(), 0}
		})
		seed.Rows("reading", []string{"asset_id", "label", "at", "seconds", "value", "known_at"}, many, func(i int) []any {
			return []any{id(1, i), 1, from.UnixMicro(), 1800, energy(i) * 1000, 1}
		})
		seed.Consent(time.UnixMicro(1))
		seed.QueueEnded()
		seed.Exec(`UPDATE reckoning SET look_at = 0`)

		before := processorTime(t)
		settleSessions(t, service)
		fmt.Fprintf(t.Output(), "%d sessions, %v of processor time each\n", many, (processorTime(t)-before)/time.Duration(many))

		sum := int64(0)
		for i := range many {
			pence := nearest(new(big.Rat).Mul(big.NewRat(3337, 1000), big.NewRat(energy(i), 1000)), false)
			sum += pence
		}
		if n := seed.Count(`SELECT count(*) FROM ledger`); n != many {
			t.Errorf("%d transactions, want %d", n, many)
		}
		if got := seed.Count(`SELECT -SUM(amount) FROM posting WHERE account = 'rewards_payable'`); int64(got) != sum {
			t.Errorf("%d p are payable, want %d", got, sum)
		}
	})
}

// processorTime is what the process has used until now, of all its threads.
func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
