package reward_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// consents replaces what the site consented to by spans, as days before the event's; the end 0
// stands for a consent that holds. Each was recorded when it began.
func (h *home) consents(days ...[2]int) {
	h.t.Helper()
	h.noConsent(h.t)
	for _, d := range days {
		from, to := h.monday.Add(-d[0]).Start().UnixMicro(), any(nil)
		if d[1] > 0 {
			to = h.monday.Add(-d[1]).Start().UnixMicro()
		} else {
			h.exec(h.t, `UPDATE site SET consent_at = $1 WHERE id = $2`, from, h.site.Bytes())
		}
		h.exec(h.t, `INSERT INTO consent_span (site_id, org_id, from_at, to_at, known_at) VALUES ($1, $2, $3, $4, $3)`, h.site.Bytes(), h.org.Bytes(), from, to)
	}
}

// metered has the boundary read on the event's day and the days before: as many kWh as kwh
// says for a day.
func (h *home) metered(kwh func(back int) float64) {
	for back := range homeDays + 1 {
		h.energy(flex.AssetID{1}, flex.ProvisionalConsumption, back, kwh(back))
	}
}

// The event's Monday reads 2 kWh; its working days of comparison, 3 to 7, 10 to 14 and 17 to 20
// days before, read 4, 5 and 6.
func byWeek(back int) float64 {
	switch {
	case back == 0:
		return 2
	case back <= 7:
		return 4
	case back <= 14:
		return 5
	}
	return 6
}

// An event is compared with days of which the boundary may be used, and no others.
func TestConsent_DaysOfComparison(t *testing.T) {
	for _, tt := range []struct {
		name string
		home func(h *home)
		want string
	}{
		{"given long before", func(h *home) { h.consents([2]int{100, 0}) }, "-2500 Wh: 25p"},
		{"given mid-way", func(h *home) { h.consents([2]int{8, 0}) }, "-2000 Wh: 20p"}, // five days of 4

		{"given too late", func(h *home) { h.consents([2]int{5, 0}) }, "-2000 Wh: 0p"},                              // three days are too few
		{"withdrawn, and given again", func(h *home) { h.consents([2]int{100, 8}, [2]int{1, 0}) }, "-3444 Wh: 34p"}, // five of 5, four of 6
		{"withdrawn for a week", func(h *home) { h.consents([2]int{100, 15}, [2]int{8, 0}) }, "-2889 Wh: 29p"},      // five of 4, four of 6
		{"withdrawn for two days", func(h *home) { h.consents([2]int{100, 4}, [2]int{2, 0}) }, "-2900 Wh: 29p"},     // three of 4, five of 5, two of 6
		{"withdrawn before the event", func(h *home) { h.consents([2]int{100, 1}) }, "missing 0: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 100)

				h.metered(byWeek)
				tt.home(h)
				if got := h.pause(flex.AssetID{1}); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// What an asset's own meter read needs no consent to the boundary for the days before.
func TestConsent_OwnMeter(t *testing.T) {
	h := newHome(t, storetest.SQLite(t), 1, 100)
	for back := range homeDays + 1 {
		h.energy(flex.AssetID{1}, flex.ChargerEnergy, back, byWeek(back)/2)
	}
	h.consents([2]int{1, 0})
	if got := h.pause(flex.AssetID{1}); got != "-1250 Wh: 13p" {
		t.Errorf("got %s", got)
	}
}

// A site's consent is its own: a neighbour with the same meter readings and a later consent is
// not compared with days before that.
func TestConsent_TwoSites(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		h.metered(byWeek)
		h.consents([2]int{100, 0})
		site, asset := flex.SiteID{10}, flex.AssetID{2}
		from := h.monday.Add(-8).Start().UnixMicro()
		h.exec(t, `INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, $3, 0)`, site.Bytes(), h.org.Bytes(), from)
		h.exec(t, `INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, $3, $3)`, site.Bytes(), h.org.Bytes(), from)
		h.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES ($1, $2, $3, 'b', 'charger', 7400, 0)`,
			asset.Bytes(), h.org.Bytes(), site.Bytes())

		for back := range homeDays + 1 {
			h.energy(asset, flex.ProvisionalConsumption, back, byWeek(back))
		}
		first := h.pause(flex.AssetID{1}, asset)
		h.fixture.site = site
		if second := h.said(); first != "-2500 Wh: 25p" || second != "-2000 Wh: 20p" {
			t.Errorf("one home: %s; its neighbour: %s", first, second)
		}
	})
}

// A consent of before that is recorded later brings its days into what was settled without them,
// and is as good as never recorded as of an instant before.
func TestConsent_KnownLater(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		h.metered(byWeek)
		h.consents([2]int{8, 0})
		if got := h.pause(flex.AssetID{1}); got != "-2000 Wh: 20p" {
			t.Fatalf("at first: %s", got)
		}
		known := h.now
		before := h.again(t, h.monday, known)

		for _, later := range []time.Duration{time.Hour, 80 * 24 * time.Hour} { // open, and long final
			h.now = known.Add(later)
			h.write(t, func(ctx context.Context, tx *store.Tx) error {
				s, err := tx.Site(ctx, h.site)
				if err != nil {
					return err
				}

				back := 11
				if later > time.Hour {
					back = 100
				}
				s.ConsentAt = h.monday.Add(-back).Start()
				return tx.UpdateSite(ctx, s, "")
			})

			h.fixture.events(t)
		}

		if got := h.said(); !strings.HasPrefix(got, "-2500 Wh: ") || !strings.Contains(got, "20p") || !strings.Contains(got, "top-up") {
			t.Errorf("a consent of before: %s", got)
		}
		if after := h.again(t, h.monday, known); after.Hash != before.Hash {
			t.Errorf("as it was known before the consent was recorded: %s, then %s", before.Hash, after.Hash)
		}

		// Withdrawn later, or with the site gone, what was known stays as it was known.
		last := h.now
		before = h.again(t, h.monday, last)
		h.now = h.now.Add(time.Hour)
		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Site(ctx, h.site)
			if err != nil {
				return err
			}
			s.ConsentAt = time.Time{}
			return tx.UpdateSite(ctx, s, "")
		})

		if after := h.again(t, h.monday, last); after.Hash != before.Hash || after.Events != 1 {
			t.Errorf("after the consent was withdrawn: %+v, before %+v", after, before)
		}
		if r, err := h.service.Repair(t.Context(), h.org, reward.Resettlement{From: h.monday, To: h.monday}); err != nil || r.Transactions != 0 {
			t.Errorf("a repair after the consent was withdrawn: %+v, %v", r, err)
		}
	})
}

// A consent of before has a session credited that nobody waited for any more, also of a
// charger that is gone.
func TestConsent_SessionLongOver(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.noConsent(t)
		y.charge(t, "2026-01-14 22:00", "2026-01-14 23:00")
		y.read(t, "2026-01-14 22:00", 1, 1)
		y.now = y.now.Add(reward.CloseAfter + time.Hour)
		if got := y.history(t); got != "" {
			t.Fatalf("without consent: %s", got)
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Site(ctx, y.site)
			if err != nil {
				return err
			}

			s.ConsentAt = clock("2026-01-14 00:00")
			return tx.UpdateSite(ctx, s, "")
		})
		if got := y.history(t); got != "flex event 4p for 2000 Wh" {
			t.Errorf("with a consent of before: %s", got)
		}
	})
}

// Registers that were read within two consents tell nothing of a time between them, and a power
// that began before the consent nothing at all.
func TestConsent_WithinAHalfHour(t *testing.T) {
	for _, tt := range []struct {
		name string
		home func(h *home, from time.Time)
		want string
	}{
		{"a register, without consent for ten minutes", func(h *home, from time.Time) {
			for back := range homeDays + 1 {
				h.register(flex.AssetID{1}, back, 0, 1000-float64(back))
				h.register(flex.AssetID{1}, back, 1, 1000-float64(back)+byWeek(back)/8)
			}

			h.gap(from.AddDate(0, 0, -3).Add(10*time.Minute), from.AddDate(0, 0, -3).Add(20*time.Minute))
		}, "-338 Wh: 3p"}, // four of 4, five of 5 and one of 6 eighths of a kWh, less two
		{"powers over half an hour longer, of which the consent begins within", func(h *home, from time.Time) {
			for back := range homeDays + 1 {
				at := from.AddDate(0, 0, -back)
				h.put = append(h.put, flex.Reading{AssetID: flex.AssetID{1}, Span: flex.Span{From: at.Add(-time.Hour), To: at.Add(time.Hour)},
					Label: flex.BoundaryImportPower, Value: flex.Micro(byWeek(back) * 1e6)})
			}

			h.gap(from.AddDate(0, 0, -10).Add(-2*time.Hour), from.AddDate(0, 0, -3))
		}, "-1750 Wh: 18p"}, // four of 5 and four of 6 kW, less two
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, storetest.SQLite(t), 1, 100)
			tt.home(h, h.monday.Period(homeSlot).Start())
			if got := h.pause(flex.AssetID{1}); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// gap has the consent of long ago withdrawn for a time.
func (h *home) gap(from, to time.Time) {
	h.consents([2]int{100, 0})
	h.exec(h.t, `UPDATE consent_span SET to_at = $1`, from.UnixMicro())
	h.exec(h.t, `INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, $3, $3)`, h.site.Bytes(), h.org.Bytes(), to.UnixMicro())
}

// The law finds a day of comparison, and a half-hour of the event, that the consent no longer
// covers; a home whose consent covers all is in order. The days are those around both changes
// of the clock, which move the event's half-hour in universal time.
func TestConsent_Law(t *testing.T) {
	const law = "no boundary reading outside a consent's span is an input: "
	for _, day := range []flex.Day{{Year: 2025, Month: 3, Dom: 30}, {Year: 2025, Month: 4, Dom: 7}, {Year: 2025, Month: 10, Dom: 26}, {Year: 2025, Month: 11, Dom: 3}} {
		t.Run(day.String(), func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 100)
				h.monday = day
				h.now = day.Start().Add(time.Hour)
				h.prices(t, day.Span(), 100)

				for back := range homeDays + 1 {
					for n := homeSlot - 4; n <= homeSlot+4; n++ { // the same time by the clock has another number on these days
						span := day.Add(-back).Period(n).Span()
						h.put = append(h.put, flex.Reading{AssetID: flex.AssetID{1}, Span: span, Label: flex.ProvisionalConsumption, Value: 4_000_000})
					}
				}

				h.consents([2]int{100, 0})
				if got := h.pause(flex.AssetID{1}); !strings.HasPrefix(got, "0 Wh") {
					t.Fatalf("got %s", got)
				}
				if findings := h.law(law); len(findings) != 0 {
					t.Errorf("all is in order: %v", findings)
				}

				for _, moved := range []struct {
					to    time.Time
					finds bool
				}{
					{h.monday.Add(-1).Period(1).Start(), true},
					{h.monday.Period(homeSlot).Start().Add(time.Second), true},
					{h.monday.Add(-60).Start(), false},
				} {
					h.exec(t, `UPDATE consent_span SET from_at = $1`, moved.to.UnixMicro())
					if findings := h.law(law); (len(findings) > 0) != moved.finds {
						t.Errorf("a consent that began at %s: %v", moved.to, findings)
					}
				}
			})
		})
	}
}

// law returns what breaks one law.
func (h *home) law(text string) []string {
	h.t.Helper()
	findings, err := h.db.Verify(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.DeleteFunc(findings, func(f string) bool { return !strings.HasPrefix(f, text) })
}
