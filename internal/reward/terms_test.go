package reward_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// agree sets terms as an operator does.
func (y *fixture) agree(t *testing.T, from flex.Day, terms ...string) (flex.Day, error) {
	t.Helper()
	values := map[string]string{}
	for _, term := range terms {
		name, value, _ := strings.Cut(term, "=")
		values[name] = value
	}
	return y.service.SetTerms(t.Context(), y.org, values, from, "ann")
}

// A change of terms acts from the next London day, or a later one. What was settled keeps the
// terms of its day: no hash and no credited penny changes, also when a correction comes later.
func TestTerms_ADayKeepsItsOwn(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, monday := settledMonday(t, url, "user_share=1")
		if got := y.history(t); got != "flex event 41p" {
			t.Fatalf("credited %s", got)
		}

		known := y.now
		before := y.again(t, monday, known)
		for _, day := range []flex.Day{monday.Add(-5), monday} {
			_, err := y.agree(t, day, "user_share=0.1")
			if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "can be changed is 2025-02-04") {
				t.Errorf("terms from %s: %v", day, err)
			}
		}
		from, err := y.agree(t, flex.Day{}, "user_share=0.1", "baseline=mid_8_of_10", "in_day=true", "paid_early=0", "loss_factor=0.5", "rounding=half_even", "claw_back=true")
		if err != nil || from != monday.Add(1) {
			t.Fatalf("terms from %s, %v, want tomorrow", from, err)
		}

		for _, days := range []int{0, 1, 40} {
			y.now = known.AddDate(0, 0, days)
			if run := y.again(t, monday, known); run.Hash != before.Hash || run.Events != before.Events {
				t.Errorf("%d days later the inputs are %s, were %s", days, run.Hash, before.Hash)
			}
		}

		// A correction of 0.05 kWh moves the balance by what it is worth, on the terms of its day.
		y.now = known.AddDate(0, 0, 2)
		if got := y.history(t); got != "flex event 41p" {
			t.Errorf("before the correction: %s", got)
		}
		y.kwh(t, monday, map[string]string{"36": "0.140"})
		y.events(t)
		if got := y.history(t); got != "flex event 41p, correction -1p" {
			t.Errorf("after it: %s", got)
		}
	})
}

// again settles a day once more as it was known at an instant.
func (y *fixture) again(t *testing.T, day flex.Day, known time.Time) store.Run {
	t.Helper()
	run, err := y.service.Resettle(t.Context(), y.org, reward.Resettlement{From: day, To: day, KnownAt: known})
	if err != nil || run.Events == 0 {
		t.Fatalf("settled again: %+v, %v", run, err)
	}
	return run
}

// A rate that counts from the beginning is that of sessions too which were read and earned
// nothing until then.
func TestTerms_FromTheBeginning(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		for _, step := range []struct{ rate, want string }{{"0", ""}, {"2", "flex event 20p for 10000 Wh"}} {
			if from, err := y.agree(t, flex.Day{}, "credit_pence_per_kwh="+step.rate); err != nil || from != (flex.Day{}) {
				t.Fatalf("a rate of %s from %s: %v", step.rate, from, err)
			}

			if step.rate == "0" {
				y.charge(t, "2026-01-14 18:00", "2026-01-14 19:00")
				y.read(t, "2026-01-14 18:00", 5, 5)
			}

			if got := y.history(t); got != step.want {
				t.Errorf("at a rate of %s: %q", step.rate, got)
			}
		}
	})
}

// A term has the value of its newest day; the terms of one day do not touch those of another;
// and a default is a value too.
func TestTerms_History(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.charge(t, "2026-01-14 18:00", "2026-01-14 19:00")
		y.read(t, "2026-01-14 18:00", 5, 5)
		y.round(t)
		if got := y.history(t); got != "flex event 20p for 10000 Wh" {
			t.Fatal(got)
		}

		spring := flex.Day{Year: 2026, Month: 3, Dom: 1}
		for _, step := range []struct {
			from flex.Day
			term string
		}{{spring, "credit_pence_per_kwh=5"}, {flex.Day{}, "credit_pence_per_kwh=0"}, {spring.Add(1), "credit_pence_per_kwh="}, {spring.Add(2), "user_share=0.5"}} {
			if _, err := y.agree(t, step.from, step.term); err != nil {
				t.Fatal(err)
			}
		}

		terms, err := y.service.Terms(t.Context(), y.org)
		if err != nil || terms.Values["credit_pence_per_kwh"] != "" {
			t.Errorf("today: %v, %v", terms.Values, err)
		}
		var got []string
		for _, c := range terms.Changes {
			got = append(got, c.From.String()+" "+c.Name+"="+c.Value+" by "+c.SetBy)
		}
		want := []string{
			"2026-01-15 credit_pence_per_kwh=0 by ann", "2026-03-01 credit_pence_per_kwh=5 by ann",
			"2026-03-02 credit_pence_per_kwh= by ann", "2026-03-03 user_share=0.5 by ann",
		}
		if !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}

		// A kilowatt-hour earns 2 p today, nothing from tomorrow, 5 p, 2 p, and nothing beside
		// a share.
		earned := flex.Pence(20)

		for _, night := range []struct {
			day  string
			want flex.Pence
		}{{"2026-01-14", 20}, {"2026-01-15", 0}, {"2026-02-28", 0}, {"2026-03-01", 50}, {"2026-03-02", 20}, {"2026-03-03", 0}} {
			y.charge(t, night.day+" 20:00", night.day+" 21:00")
			y.read(t, night.day+" 20:00", 5, 5)
			y.round(t)
			info, err := y.service.Info(t.Context(), y.org, y.site)
			if err != nil || info.Earned-earned != night.want {
				t.Errorf("on %s earned %s, want %s (%v)", night.day, info.Earned-earned, night.want, err)
			}

			earned = info.Earned
		}
	})
}

// Zero means zero: of the least withdrawal and of what an estimate pays.
func TestTerms_Zero(t *testing.T) {
	y, monday, v := pausedMonday(t, storetest.SQLite(t))
	if from, err := y.agree(t, flex.Day{}, "user_share=0.5", "paid_early=0", "min_withdrawal_pence=0"); err != nil || from != (flex.Day{}) {
		t.Fatalf("terms from %s, %v, want from the beginning, as nothing is settled", from, err)
	}
	y.kwh(t, monday, v.Metered)
	y.now = monday.Period(36).End()
	y.events(t)
	if got := y.history(t); got != "flex event 0p" {
		t.Errorf("on the estimate: %s", got)
	}

	y.now = clock("2025-04-01 00:00")
	y.events(t)
	if got := y.history(t); got != "flex event 0p, flex period top-up 20p" {
		t.Errorf("in the end: %s", got)
	}
	info, err := y.service.Info(t.Context(), y.org, y.site)
	if err != nil || !info.CanWithdraw || info.Terms.Minimum != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// What cannot be is refused, and nothing of it is set.
func TestTerms_Refused(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	for _, s := range reward.TermSettings() {
		for _, nonsense := range []string{"nonsense", "-1", "NaN"} {
			if _, err := y.agree(t, flex.Day{}, "min_wait_days=3", s.Name+"="+nonsense); flex.KindOf(err) != flex.Invalid && s.Name != "min_wait_days" {
				t.Errorf("%s=%s: %v", s.Name, nonsense, err)
			}
		}
		if s.Default == "" || s.Help == "" {
			t.Errorf("%s has no default or no word of help", s.Name)
		}
	}

	for _, bad := range []string{"no_such=1", "user_share=1.1", "in_day_cap_wh=0", "loss_factor=2.1", "credit_pence_per_kwh=1001", "min_wait_days=3651", "paid_early=Inf"} {
		if _, err := y.agree(t, flex.Day{}, "user_share=0.5", bad); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	terms, err := y.service.Terms(context.Background(), y.org)
	if err != nil || len(terms.Changes) != 0 {
		t.Errorf("set nevertheless: %+v, %v", terms.Changes, err)
	}
}

// Terms are set while another process settles a day: it is settled on the terms that hold from
// then on, or they are refused for it.
func TestTerms_SetBesideSettlement(t *testing.T) {
	for _, name := range []string{"terms first", "settlement first"} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 100)
				for back := range homeDays {
					h.energy(h.asset, flex.ProvisionalConsumption, back+1, 4)
				}

				h.flush()
				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					a, err := tx.Asset(ctx, h.asset)
					if err != nil {
						return err
					}
					return tx.SetPause(ctx, a, h.monday.Period(homeSlot).Span(), 0)
				})
				h.now = h.monday.Period(homeSlot).End().Add(time.Minute)
				h.jobs() // the event is found, and waits for its reading
				h.energy(h.asset, flex.ProvisionalConsumption, 0, 2)
				h.flush()
				h.now = h.now.Add(2 * time.Hour)

				done := make(chan error, 1)
				settle := func() error {
					_, err := h.service.SettleEvents(context.Background())
					return err
				}
				terms := func() error {
					_, err := h.service.SetTerms(context.Background(), h.org, map[string]string{"user_share": "0"}, h.monday.Add(1), "ann")
					return err
				}

				locks := storetest.At(t, h.db, url)
				beside := func(do func() error) {
					go func() { done <- do() }()
					for h.db.Engine() == "postgres" && len(done) == 0 {
						if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
							return
						}
						runtime.Gosched()
					}
				}
				want := map[string]string{
					"terms first":      "market_receivable 20, platform_revenue -20",
					"settlement first": "market_receivable 20, rewards_payable -20",
				}[name]

				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					if name == "terms first" {
						if _, err := tx.LockBooks(ctx); err != nil {
							return err
						}
						beside(settle)
						// Past the check of what is settled: the event was looked at without
						// its reading.
						return tx.PutTerm(ctx, flex.Term{Name: "user_share", From: h.monday, Value: "0", SetBy: "ann"})
					}

					if err := tx.ShareBooks(ctx); err != nil {
						return err
					}
					beside(terms)
					if len(done) > 0 {
						t.Error("the terms did not wait for who settles")
					}
					return nil
				})

				if err := <-done; err != nil {
					t.Fatal(err)
				}
				h.jobs()
				if got := h.owes(); got != want {
					t.Errorf("in the books %s, want %s", got, want)
				}
			})
		})
	}
}
