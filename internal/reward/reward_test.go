package reward_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fixture is one organisation with one site and one charger, and a clock that the test turns.
type fixture struct {
	url     string
	db      *store.DB
	service *reward.Service
	org     flex.OrgID
	site    flex.SiteID
	asset   flex.AssetID
	now     time.Time
}

func open(t *testing.T, url string) *fixture {
	t.Helper()
	y := &fixture{url: url, site: flex.SiteID{9}, asset: flex.AssetID{1}, now: clock("2026-01-14 18:00")}
	y.db = storetest.Open(t, url, store.Options{Now: func() time.Time { return y.now }})
	y.service = &reward.Service{DB: y.db}
	org, err := y.db.AddOrg(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}

	y.org = org.ID
	y.exec(t, `INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, NULL, 0)`, y.site.Bytes(), y.org.Bytes())
	y.consent(t)
	y.supply(t, 10_000_000) // so that a test may earn pounds in a half-hour
	y.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, model, created_at) VALUES ($1, $2, $3, 'a', 'electric_vehicle', 'Leaf', 0)`,
		y.asset.Bytes(), y.org.Bytes(), y.site.Bytes())
	y.pays(t, atOnce())
	return y
}

// consent has every site consent to the use of its boundary meter long ago.
func (y *fixture) consent(t *testing.T) {
	t.Helper()
	y.exec(t, `UPDATE site SET consent_at = 1`)
	y.exec(t, `INSERT INTO consent_span (site_id, org_id, from_at, known_at) SELECT id, org_id, 1, 1 FROM site WHERE 1 = 1 ON CONFLICT DO NOTHING`)
}

// noConsent has it that no site ever did.
func (y *fixture) noConsent(t *testing.T) {
	t.Helper()
	y.exec(t, `UPDATE site SET consent_at = NULL`)
	y.exec(t, `DELETE FROM consent_span`)
}

// supply sets what the site's connection can carry, each way.
func (y *fixture) supply(t *testing.T, w flex.Watts) {
	t.Helper()
	y.exec(t, `DELETE FROM supply`)
	y.exec(t, `INSERT INTO supply (site_id, org_id, import_w, export_w, known_at) VALUES ($1, $2, $3, $3, 0)`, y.site.Bytes(), y.org.Bytes(), int64(w))
	y.exec(t, `UPDATE site SET import_w = $1, export_w = $1, supply_set = TRUE`, int64(w))
}

func clock(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err)
	}
	return t
}

func (y *fixture) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if err := storetest.Exec(t, y.url, statement, args...); err != nil {
		t.Fatal(err)
	}
}

func (y *fixture) write(t *testing.T, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	if err := y.db.Write(t.Context(), y.org, func(tx *store.Tx) error { return fn(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

// atOnce are settings under which a link is enough, and an account is paid at once.
func atOnce() flex.PayoutSettings {
	return flex.PayoutSettings{WithoutCode: true, CoolingHours: flex.Some(0)}
}

// pays sets the rules of payments.
func (y *fixture) pays(t *testing.T, s flex.PayoutSettings) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.SetSettings(ctx, flex.OrgSettings{Payout: s}) })
}

// set sets terms, as in "user_share=0.5", from the beginning.
func (y *fixture) set(t *testing.T, terms ...string) {
	t.Helper()
	y.write(t, func(ctx context.Context, tx *store.Tx) error { return putTerms(ctx, tx, terms...) })
}

// putTerms sets terms from the beginning, whatever was settled on others.
func putTerms(ctx context.Context, tx *store.Tx, terms ...string) error {
	for _, term := range terms {
		name, value, _ := strings.Cut(term, "=")
		if err := tx.PutTerm(ctx, flex.Term{Name: name, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// charge plugs the car in and out.
func (y *fixture) charge(t *testing.T, from, to string) {
	t.Helper()
	y.now = clock(from)
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, y.asset)
		if err != nil {
			return err
		}
		return tx.OpenSession(ctx, &c, 0)
	})

	y.now = clock(to)
	y.write(t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, y.asset)
		if err != nil {
			return err
		}
		return tx.CloseSession(ctx, &c.Session)
	})
}

// read puts half-hourly energies from an instant on; a negative one is left out.
func (y *fixture) read(t *testing.T, from string, kwh ...float64) {
	t.Helper()
	var rs []flex.Reading
	for i, e := range kwh {
		p := flex.PeriodAt(clock(from)).Add(i)
		if e >= 0 {
			rs = append(rs, flex.Reading{AssetID: y.asset, Span: p.Span(), Label: flex.ChargerEnergy, Value: flex.Micro(e * 1e6)})
		}
	}
	y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
}

// round runs the job until it has nothing left to do.
func (y *fixture) round(t *testing.T) {
	t.Helper()
	for range 10 {
		r, err := y.service.SettleSessions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Count == 0 {
			return
		}
	}
	t.Fatal("the round still found work after ten runs")
}

// history tells the site's transactions, oldest first.
func (y *fixture) history(t *testing.T) string {
	t.Helper()
	y.round(t)
	h, err := y.service.Transactions(t.Context(), y.org, y.site, 100, 0)
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for _, tr := range h.Transactions {
		s := fmt.Sprintf("%s %dp", tr.Kind, tr.Amount)
		if tr.Creditable != nil {
			s += fmt.Sprintf(" for %d Wh", *tr.Creditable)
		}
		if tr.Status != "" {
			s += " " + string(tr.Status)
		}
		all = append([]string{s}, all...)
	}

	if h.Total != len(all) {
		t.Errorf("%d transactions in all, %d listed", h.Total, len(all))
	}
	return strings.Join(all, ", ")
}

func TestSettleSessions_SessionIsCreditedWhenItsReadingsAreThere(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "credit_pence_per_kwh=2.5")
		y.charge(t, "2026-01-14 22:10", "2026-01-15 00:20")
		if got := y.history(t); got != "" {
			t.Errorf("without readings: %s", got)
		}
		y.read(t, "2026-01-14 21:30", 9, 1, 3.5, 3.5, -1, 0.5, 9)
		if got := y.history(t); got != "" {
			t.Errorf("with a half-hour missing: %s", got)
		}

		y.read(t, "2026-01-14 23:30", 2)
		if got := y.history(t); got != "flex event 26p for 10500 Wh" { // 26.25
			t.Errorf("complete: %s", got)
		}
		y.read(t, "2026-01-14 23:30", 4)
		if got := y.history(t); got != "flex event 26p for 10500 Wh, flex period top-up 5p for 2000 Wh" { // 31.25
			t.Errorf("corrected upward: %s", got)
		}

		y.set(t, "credit_pence_per_kwh=100") // holds for sessions to come
		y.read(t, "2026-01-14 23:30", 0)
		if got := y.history(t); got != "flex event 26p for 10500 Wh, flex period top-up 5p for 2000 Wh, correction -10p for -4000 Wh" {
			t.Errorf("corrected downward: %s", got)
		}
		h, err := y.service.Transactions(t.Context(), y.org, y.site, 2, 2)
		if err != nil || len(h.Transactions) != 1 || h.Total != 3 {
			t.Fatalf("the oldest of three: %+v %v", h, err)
		}

		first := h.Transactions[0]
		if first.Vehicle != "Leaf" || *first.Rate != 2_500_000 || first.Cause.Session.IsZero() || first.Settled.String() != "2026-01-15" ||
			!first.Time.From.Equal(clock("2026-01-14 22:10")) || !first.Time.To.Equal(clock("2026-01-15 00:20")) {
			t.Errorf("the session's transaction: %+v", first)
		}
		info, err := y.service.Info(t.Context(), y.org, y.site)
		if err != nil || info.Balance != 21 || info.Earned != 21 || info.CanWithdraw || !info.BelowMinimum || info.Terms.Minimum != 1000 {
			t.Errorf("info %+v %v", info, err)
		}
	})
}

func TestSettleSessions_DeadlinesOfReadings(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
	y.read(t, "2026-01-14 22:00", 3)
	for _, tt := range []struct{ at, want string }{
		{"2026-01-14 23:29", ""},
		{"2026-01-14 23:30", "flex event 6p for 3000 Wh"}, // with what is there
	} {
		y.now = clock(tt.at)
		if got := y.history(t); got != tt.want {
			t.Errorf("at %s: %s, want %s", tt.at, got, tt.want)
		}
	}

	y.now = clock("2026-02-01 12:00")
	y.read(t, "2026-01-14 22:30", 3)
	if got := y.history(t); got != "flex event 6p for 3000 Wh, flex period top-up 6p for 3000 Wh" {
		t.Errorf("late: %s", got)
	}

	y.charge(t, "2026-02-01 14:00", "2026-02-01 15:00")
	y.now = clock("2026-02-02 14:59")
	before := y.history(t)
	y.now = clock("2026-02-02 15:00")
	if got := y.history(t); got != before+", flex event 0p for 0 Wh" {
		t.Errorf("a session without any reading, a day later: %s", got)
	}

	y.now = clock("2026-03-09 15:00") // no longer waited for
	before = y.history(t)
	y.read(t, "2026-02-01 14:00", 3, 3)
	if got := y.history(t); got != before+", flex period top-up 12p for 6000 Wh" { // a first reading counts whenever it comes
		t.Errorf("after the last deadline: %s", got)
	}
}

// A background job that found a session due and came to it after another job had looked at it lets
// it be; looking twice before a reading came had it wait by the clock alone. The readings
// then wake it at once: energies, or the register once it was read at both ends.
func TestSettleSessions_LookedAtElsewhere(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")

		var due []flex.SessionID
		look := func(want int) {
			t.Helper()
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				rs, err := tx.SessionSettlements(ctx, due)
				if len(rs) != want {
					t.Errorf("%d of %d sessions are still due, want %d", len(rs), len(due), want)
				}
				return err
			})
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
			due, err = tx.DueSessionSettlements(ctx, 10)
			return err
		})

		look(1)
		y.round(t) // the other job
		look(0)
		y.read(t, "2026-01-14 22:00", 3, 3)
		look(1)
		if got := y.history(t); got != "flex event 12p for 6000 Wh" {
			t.Errorf("at the same instant: %s", got)
		}
		y.charge(t, "2026-01-15 22:00", "2026-01-15 22:30")
		y.round(t)

		for i, kwh := range []flex.Micro{100e6, 103e6} { // the later mark first
			at := clock("2026-01-15 22:30").Add(-time.Duration(i) * flex.HalfHour)
			y.write(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.PutReadings(ctx, []flex.Reading{{AssetID: y.asset, Span: flex.Span{From: at, To: at}, Label: flex.ChargerRegister, Value: 203e6 - kwh}})
			})
			want := "flex event 12p for 6000 Wh"
			if i > 0 {
				want += ", flex event 6p for 3000 Wh"
			}
			if got := y.history(t); got != want {
				t.Errorf("after %d marks of the register: %s, want %s", i+1, got, want)
			}
		}
	})
}

// A half-hour that stays missing does not keep a later one from being credited within a day.
func TestSettleSessions_AfterAHole(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.charge(t, "2026-01-14 22:00", "2026-01-14 23:30")
	y.read(t, "2026-01-14 22:00", 3)
	y.now = clock("2026-01-15 00:00")
	y.round(t)
	y.read(t, "2026-01-14 23:00", 3)
	y.now = clock("2026-01-16 00:00")
	if got := y.history(t); got != "flex event 6p for 3000 Wh, flex period top-up 6p for 3000 Wh" {
		t.Errorf("a day later: %s", got)
	}
}

// Sessions share a half-hour: its energy counts once, for the first of them.
func TestSettleSessions_SharedHalfHour(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.charge(t, "2026-01-14 22:00", "2026-01-14 22:40")
	y.charge(t, "2026-01-14 22:50", "2026-01-14 23:30")
	y.charge(t, "2026-01-14 23:30", "2026-01-14 23:30") // of no length
	y.read(t, "2026-01-14 22:00", 1, 2, 4, 8)
	if got := y.history(t); got != "flex event 6p for 3000 Wh, flex event 8p for 4000 Wh, flex event 16p for 8000 Wh" {
		t.Errorf("got %s", got)
	}
}

func TestSettleSessions_NothingWithoutConsent(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.noConsent(t)
	y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
	y.read(t, "2026-01-14 22:00", 3, 3)
	if got := y.history(t); got != "" {
		t.Errorf("without consent: %s", got)
	}
	y.consent(t)
	y.now = clock("2026-01-15 23:00")
	if got := y.history(t); got != "flex event 12p for 6000 Wh" {
		t.Errorf("with consent: %s", got)
	}
}

// A consent that becomes known days later has the sessions that wait for it looked at at once,
// though by themselves they are looked at ever more seldom.
func TestSettleSessions_ConsentDaysLater(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.noConsent(t)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
		y.read(t, "2026-01-14 22:00", 3, 3)

		looks, seed := 0, storetest.NewSeed(t, y.db, url)
		for y.now = clock("2026-01-15 00:00"); y.now.Before(clock("2026-01-24 12:00")); y.now = y.now.Add(12 * time.Hour) {
			if got := y.history(t); got != "" {
				t.Fatalf("without consent: %s", got)
			}
			looks += seed.Count(`SELECT COUNT(*) FROM reckoning WHERE look_at > $1`, y.now.Add(25*time.Hour).UnixMicro())
		}
		if looks == 0 {
			t.Error("it is looked at each day")
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Site(ctx, y.site)
			if err != nil {
				return err
			}
			s.ConsentAt = clock("2026-01-14 12:00")
			return tx.UpdateSite(ctx, s, "")
		})
		if got := y.history(t); got != "flex event 12p for 6000 Wh" {
			t.Errorf("with consent: %s", got)
		}
	})
}

// New terms have the sessions that wait for a reading looked at at once; by themselves they are not
// looked at again before the last deadline.
func TestSettleSessions_TermsDaysLater(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "credit_pence_per_kwh=0")
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
		y.read(t, "2026-01-14 22:00", 3)

		for y.now = clock("2026-01-14 23:10"); y.now.Before(clock("2026-01-18 12:00")); y.now = y.now.Add(12 * time.Hour) {
			if got := y.history(t); got != "" {
				t.Fatalf("for nothing: %s", got)
			}
		}

		late := clock("2026-02-18 22:00").UnixMicro()
		if n := storetest.NewSeed(t, y.db, url).Count(`SELECT COUNT(*) FROM reckoning WHERE look_at > $1`, late); n != 1 {
			t.Errorf("%d sessions rest until their deadline, want 1", n)
		}

		if _, err := y.agree(t, flex.Day{}, "credit_pence_per_kwh=2"); err != nil {
			t.Fatal(err)
		}
		if got := y.history(t); got != "flex event 6p for 3000 Wh" {
			t.Errorf("on new terms: %s", got)
		}
	})
}

// An asset that is taken away in a session still earns its user what was metered.
func TestSettleSessions_AssetGone(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
		y.read(t, "2026-01-14 22:00", 3, 3)
		y.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, y.asset) })
		if got := y.history(t); got != "flex event 12p for 6000 Wh" {
			t.Errorf("got %s", got)
		}
	})
}

// A flicker of the plug reopens a session that was settled already.
func TestSettleSessions_Reopened(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 22:30")
		y.read(t, "2026-01-14 22:00", 1, 2)
		if got := y.history(t); got != "flex event 2p for 1000 Wh" {
			t.Errorf("first end: %s", got)
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.PlanningState(ctx, y.asset)
			if err != nil {
				return err
			}
			return tx.ReopenSession(ctx, &c.Session)
		})

		y.now = clock("2026-01-14 23:00")
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.PlanningState(ctx, y.asset)
			if err != nil {
				return err
			}
			return tx.CloseSession(ctx, &c.Session)
		})
		if got := y.history(t); got != "flex event 2p for 1000 Wh, flex period top-up 4p for 2000 Wh" {
			t.Errorf("second end: %s", got)
		}
	})
}

// A car that gave energy earns nothing by what it bought back for it, also when it is settled
// again: cycling makes no money.
func TestSession_Given(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)

		for i, c := range []struct {
			given int
			want  string
		}{
			{0, "flex event 40p for 20000 Wh"},
			{4050, "flex event 30p for 15000 Wh"},
			{16200, "flex event 0p for 0 Wh"},
			{50000, "flex event 0p for 0 Wh"},
		} {
			at := clock("2026-01-10 00:00").AddDate(0, 0, i)
			y.charge(t, at.Format("2006-01-02 15:04"), at.Add(2*time.Hour).Format("2006-01-02 15:04"))
			y.exec(t, fmt.Sprintf(`UPDATE reckoning SET given_wh = %d WHERE from_at = %d`, c.given, at.UnixMicro()))

			before := y.history(t)
			y.read(t, at.Format("2006-01-02 15:04"), 5, 5, 5, 5)
			got := strings.Trim(strings.Replace(y.history(t), before, "", 1), ", ")
			if got != c.want {
				t.Errorf("given %d Wh: got %s, not %s", c.given, got, c.want)
			}
		}
	})
}

// Rounds of several processes at once post once.
func TestSettleSessions_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		for i := range 40 {
			at := clock("2026-01-10 00:00").Add(time.Duration(i) * time.Hour)
			y.charge(t, at.Format("2006-01-02 15:04"), at.Add(time.Hour).Format("2006-01-02 15:04"))
			y.read(t, at.Format("2006-01-02 15:04"), 1, 1)
		}

		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, err := y.service.SettleSessions(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := y.history(t); got != strings.TrimSuffix(strings.Repeat("flex event 4p for 2000 Wh, ", 40), ", ") {
			t.Errorf("got %s", got)
		}
	})
}

func TestTransactions_OtherSites(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	for _, site := range []flex.SiteID{{77}, {}} {
		if _, err := y.service.Transactions(t.Context(), y.org, site, 10, 0); flex.KindOf(err) != flex.NotFound {
			t.Errorf("got %v", err)
		}
		if _, err := y.service.Info(t.Context(), y.org, site); flex.KindOf(err) != flex.NotFound {
			t.Errorf("got %v", err)
		}
	}
}

// What is written in the books stays, whoever asks.
func TestBooks_Immutable(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 22:30")
		y.read(t, "2026-01-14 22:00", 1000)
		y.round(t)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Withdraw(ctx, y.site, 1500, "user")
			return err
		})

		for _, statement := range []string{
			`UPDATE ledger SET credit = credit + 1`, `DELETE FROM ledger`,
			`UPDATE posting SET amount = amount * 2`, `DELETE FROM posting`,
			`UPDATE withdrawal_move SET decided_by = 'me'`, `DELETE FROM withdrawal_move`,
		} {
			if err := storetest.Exec(t, url, statement); err == nil {
				t.Errorf("%s: done", statement)
			}
		}
		if got := y.history(t); got != "flex event 2000p for 1000000 Wh, withdrawal -1500p pending_approval" {
			t.Errorf("got %s", got)
		}
	})
}

func TestWithdrawal_Steps(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 22:30")
		y.read(t, "2026-01-14 22:00", 1000)
		y.round(t)
		var w store.Withdrawal
		y.write(t, func(ctx context.Context, tx *store.Tx) (err error) {
			w, err = tx.Withdraw(ctx, y.site, 1500, "user")
			return err
		})

		for _, step := range []struct {
			to      ledger.PaymentStatus
			kind    flex.Kind
			balance flex.Pence
		}{
			{ledger.Posted, flex.Conflict, 500},
			{ledger.Approved, 0, 500},
			{ledger.Processing, 0, 500},
			{ledger.Failed, 0, 2000},
			{ledger.Processing, flex.Conflict, 2000},
			{ledger.Approved, flex.Conflict, 2000},
			{ledger.PendingApproval, 0, 500}, // tried again
			{ledger.Approved, 0, 500},
			{ledger.Processing, 0, 500},
			{ledger.Posted, 0, 500},
			{ledger.Returned, 0, 2000},
			{ledger.Approved, flex.Conflict, 2000},
		} {
			err := y.db.Write(t.Context(), y.org, func(tx *store.Tx) error {
				_, err := tx.MoveWithdrawal(t.Context(), w.ID, step.to, "operator ann", "")
				return err
			})
			if (err != nil) != (step.kind != 0) || err != nil && flex.KindOf(err) != step.kind {
				t.Errorf("to %s: %v", step.to, err)
			}

			info, err := y.service.Info(t.Context(), y.org, y.site)
			if err != nil || info.Balance != step.balance || info.Earned != 2000 {
				t.Errorf("after %s: %+v %v, want a balance of %d", step.to, info, err, step.balance)
			}
		}

		if got := y.history(t); got != "flex event 2000p for 1000000 Wh, withdrawal -1500p returned" {
			t.Errorf("got %s", got)
		}
	})
}

// A half-hour in which a session ran for less than a minute is not its own, unless it has no
// other.
func TestSettleSessions_Edges(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	session := func(from, to string) {
		t.Helper()
		in, err := time.Parse(time.DateTime, "2026-01-14 "+from)
		if err != nil {
			t.Fatal(err)
		}

		out, err := time.Parse(time.DateTime, "2026-01-14 "+to)
		if err != nil {
			t.Fatal(err)
		}
		y.now = in
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.PlanningState(ctx, y.asset)
			if err != nil {
				return err
			}
			return tx.OpenSession(ctx, &c, 0)
		})

		y.now = out
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			c, err := tx.PlanningState(ctx, y.asset)
			if err != nil {
				return err
			}
			return tx.CloseSession(ctx, &c.Session)
		})
	}

	session("18:29:01", "20:00:59") // 18:30 to 20:00
	session("20:10:00", "20:10:20") // 20:00 to 20:30, all that it has
	session("20:20:00", "20:31:00") // 20:30 to 21:00: the half-hour before is taken
	y.read(t, "2026-01-14 18:00", 1000, 1, 2, 4, 8, 16)
	if got := y.history(t); got != "flex event 14p for 7000 Wh, flex event 16p for 8000 Wh, flex event 32p for 16000 Wh" {
		t.Errorf("got %s", got)
	}
}
