package sums_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// sessionOrgs are organisations, each with its rate and rounding.
var sessionOrgs = []struct {
	name, rate, rounding string
}{
	{"two pence", "2", "half_away_from_zero"},
	{"half a penny", "0.5", "half_even"},
	{"odd", "3.337", "half_away_from_zero"},
}

// garage is a home of an organisation, in the oracle and in the store.
type garage struct {
	*stays
	seed     *storetest.Seed
	site     flex.SiteID
	assets   []flex.AssetID
	sessions map[[2]int]flex.SessionID
}

func newGarage(seed *storetest.Seed, s *stays) *garage {
	g := &garage{stays: s, seed: seed, site: seed.Site(), sessions: map[[2]int]flex.SessionID{}}
	seed.Exec(`UPDATE site SET import_w = $2, export_w = $2, supply_set = TRUE WHERE id = $1`, g.site.Bytes(), s.supply)
	seed.Exec(`INSERT INTO supply (site_id, org_id, import_w, export_w, known_at, from_at) VALUES ($1, $2, $3, $3, 1, 0)`, g.site.Bytes(), seed.Org.Bytes(), s.supply)

	for d, dev := range s.devices {
		kind := flex.Charger
		if s.cars[d] {
			kind = flex.ElectricVehicle
		}
		id := seed.Asset(g.site, kind, flex.Watts(dev.power))
		g.assets = append(g.assets, id)
		for _, at := range s.restarts[keptKey{d, chargerRegister}] {
			seed.Exec(`INSERT INTO register_reset (asset_id, label, at, known_at) VALUES ($1, 12, $2, 1)`, id.Bytes(), instant(at).UnixMicro())
		}

		for n, p := range s.plug[d] {
			session := flex.SessionID(id)
			session[0], session[1] = byte(n+1), 0xed
			g.sessions[[2]int{d, n}] = session
			seed.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, plugged_out_at, generation) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
				session.Bytes(), seed.Org.Bytes(), id.Bytes(), g.site.Bytes(), n+1, instant(p[0]).UnixMicro(), instant(p[1]).UnixMicro())
		}
	}
	return g
}

// put sends a stage's readings, in parts.
func (g *garage) put(t *testing.T, db *store.DB, part []sent) {
	t.Helper()
	var rs []flex.Reading
	in := map[sent]bool{} // a time, device and kind is once in a part
	send := func() {
		err := db.Write(t.Context(), g.seed.Org, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) })
		if err != nil {
			t.Fatal(err)
		}
		rs = nil
		clear(in)
	}

	for _, x := range part {
		key := sent{x.device, x.kind, x.from, x.to, 0}
		if in[key] {
			send()
		}
		in[key] = true
		rs = append(rs, flex.Reading{
			AssetID: g.assets[x.device], Label: flex.Label(x.kind), Value: flex.Micro(x.value),
			Span: flex.Span{From: instant(x.from), To: instant(x.to)},
		})
	}
	send()
}

// expected is what each session's transactions add up to, by the oracle.
func (g *garage) expected(fault string) (lines []string) {
	g.fault = fault
	for _, e := range g.earned() {
		if e.energy != 0 || e.pence != 0 {
			lines = append(lines, fmt.Sprintf("session %s: %d Wh, %d p", g.sessions[[2]int{e.device, e.number}], e.energy, e.pence))
		}
	}
	g.fault = ""
	slices.Sort(lines)
	return lines
}

// figures are the same by the service's books.
func (g *garage) figures(t *testing.T, db *store.DB) (lines []string) {
	t.Helper()
	energy, pence := map[flex.SessionID]int64{}, map[flex.SessionID]int64{}
	var balance, sum int64
	err := db.Read(t.Context(), g.seed.Org, func(tx *store.Tx) error {
		clear(energy)
		clear(pence)
		ts, _, err := tx.Transactions(t.Context(), g.site, 10_000, 0)
		if err != nil {
			return err
		}

		sum = 0
		for _, x := range ts {
			energy[x.Cause.Session] += int64(*x.Creditable)
			pence[x.Cause.Session] += int64(x.Amount)
			sum += int64(x.Amount)
		}
		b, err := tx.Balance(t.Context(), g.site)
		balance = int64(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if balance != sum {
		t.Errorf("the balance is %d p, and the transactions come to %d", balance, sum)
	}

	for id, e := range energy {
		if e != 0 || pence[id] != 0 {
			lines = append(lines, fmt.Sprintf("session %s: %d Wh, %d p", id, e, pence[id]))
		}
	}
	slices.Sort(lines)
	return lines
}

// settleSessions runs the job until nothing is due.
func settleSessions(t *testing.T, s *reward.Service) {
	t.Helper()
	for range 2_000 {
		r, err := s.SettleSessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Count == 0 && !r.More {
			return
		}
	}
	t.Fatal("the job never comes to rest")
}

// Random homes of three organisations with up to four chargers and cars, on both days of a clock change and on
// one without: sessions that touch, end around a half-hour's ends and last a second; readings late, doubled,
// corrected and out of order; registers replaced within a session; energies above what a device can take. At
// each stage every session's transactions come to what a calculation that shares no code with the service says.
func TestSums_Sessions(t *testing.T) {
	homes := 2
	if os.Getenv("FLEXD_LONG") != "" {
		homes = 120
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		homes := storetest.OneOf(url, homes, 1)
		now := instant(dateOf(2025, 10, 29).begin())
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &reward.Service{DB: db}
		var garages []*garage
		for n, of := range sessionOrgs {
			org, err := db.AddOrg(t.Context(), of.name)
			if err != nil {
				t.Fatal(err)
			}

			terms := map[string]string{"credit_pence_per_kwh": of.rate, "rounding": of.rounding}
			if _, err := service.SetTerms(t.Context(), org.ID, terms, flex.Day{}, "test"); err != nil {
				t.Fatal(err)
			}
			rate, _ := new(big.Rat).SetString(of.rate)
			for k, day := range []date{dateOf(2025, 3, 30), dateOf(2025, 10, 26), dateOf(2025, 6, 11)} {
				for i := range homes {
					r := rand.New(rand.NewPCG(uint64(i), uint64(n*3+k)))
					garages = append(garages, newGarage(seed.As(org.ID), drawStays(r, day, rate, of.rounding == "half_even")))
				}
			}
		}

		seed.Consent(time.UnixMicro(1))
		seed.QueueEnded()
		sessions := 0

		for stage := range 4 {
			for _, g := range garages {
				g.come(stage)
				g.put(t, db, g.more[stage])
			}
			now = now.Add(time.Hour)
			settleSessions(t, service)

			for i, g := range garages {
				got, want := g.figures(t, db), g.expected("")
				sessions += len(want)
				if !slices.Equal(got, want) {
					t.Errorf("home %d, stage %d: the service says\n%v, the oracle\n%v", i, stage, got, want)
				}
			}
		}

		for _, fault := range []string{"a car counts beside its charger", "each session has its half-hours", "registers never begin anew", "nothing is above a rating"} {
			if !slices.ContainsFunc(garages, func(g *garage) bool {
				return !slices.Equal(g.expected(fault), g.expected(""))
			}) {
				t.Errorf("%s: the comparison does not find it", fault)
			}
		}
		resets(seed)
		fmt.Fprintf(t.Output(), "%d homes, %d sessions compared\n", len(garages), sessions)
	})
}
