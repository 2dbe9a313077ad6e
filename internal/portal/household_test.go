package portal_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/portal"
	"flexd/internal/product"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// evening is a home with a charger and prices until the next evening, at 18:00.
type evening struct {
	*home
	*storetest.Seed
	control *control.Service
	asset   flex.AssetID
	page    string // the address of the household's page
}

// eachEvening runs the test on each engine. Prices are £200/MWh in the evening, £50 from
// 01:00 to 05:00, and £100 else.
func eachEvening(t *testing.T, test func(t *testing.T, e *evening)) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := &home{browser: http.DefaultClient, now: time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)}
		h.db = storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return h.now }})
		e := &evening{home: h, Seed: storetest.NewSeed(t, h.db, url), control: &control.Service{DB: h.db}}
		h.org = e.Seed.Org
		h.site = e.Site(flex.FullScheduleMethod)
		e.asset = e.Asset(h.site, flex.Charger, 7400)
		e.publish(t)

		h.service = &reward.Service{DB: h.db}
		s := &portal.Server{Reward: h.service, Control: e.control, Products: &product.Service{DB: h.db, Control: e.control}, Registry: &registry.Service{DB: h.db}, Access: &access.Service{DB: h.db}}
		h.server = httptest.NewServer(s.Handler())
		t.Cleanup(h.server.Close)
		h.service.BaseURL = h.server.URL
		e.page = h.link(t, reward.LinkOptions{})

		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}

		h.browser = &http.Client{Jar: jar}
		test(t, e)
	})
}

// publish makes the prices of 18:00 to 18:00 of the next day known.
func (e *evening) publish(t *testing.T) {
	t.Helper()
	e.publishNight(t, 50)
}

// publishNight makes the prices known with another one from 01:00 to 05:00.
func (e *evening) publishNight(t *testing.T, night float64) {
	t.Helper()
	first := flex.PeriodAt(e.now)
	prices := make([]flex.PricedPeriod, 48)

	for i := range prices {
		pounds := 100.0
		switch hour := first.Add(i).Start().Hour(); {
		case hour >= 18 && hour < 22:
			pounds = 200
		case hour >= 1 && hour < 5:
			pounds = night
		}

		prices[i] = flex.PricedPeriod{Period: first.Add(i), Price: flex.FromGBPPerMWh(pounds), Known: true}
	}

	err := e.db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{
			Source: "test", PublishedAt: all.Now().Add(-time.Second), Span: flex.Span{From: first.Start(), To: first.Add(len(prices)).Start()},
		}, prices)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// plugIn has a car come that wants 14.8 kWh, two hours at full power, by 07:00.
func (e *evening) plugIn(t *testing.T) {
	t.Helper()
	by := flex.WallTime(7 * time.Hour)
	err := e.control.Event(t.Context(), e.org, e.asset, control.Event{
		Kind: control.PlugIn, Intent: &flex.Intent{Need: 14_800, ReadyByLocal: &by, Mode: flex.Minimise},
		Tariff: &flex.Tariff{Zone: "Europe/London", Type: "single_rate"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (e *evening) wish(t *testing.T, pairs ...string) (int, string) {
	t.Helper()
	return e.post(t, e.page+"/wish", append([]string{"asset", e.asset.String()}, pairs...)...) // a later pair counts
}

// All times of a car are by the clocks of its tariff, also until when it charges at once.
func TestHousehold_OtherZone(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		there := control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{Zone: "Europe/Berlin", Type: "single_rate"}}
		if err := e.control.Event(t.Context(), e.org, e.asset, there); err != nil {
			t.Fatal(err)
		}

		status, page := e.wish(t, "act", "now", "hours", "2")
		want(t, status, page, 200, "It charges 19:00 to 21:00,", "It charges at once until 21:00.")
	})
}

func TestHousehold_Evening(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "<h1>Your home</h1>", "No car is plugged in.", "£0.00")

		e.plugIn(t)
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "It charges 01:00 to 03:00, and has the 14.8 kWh by 07:00 on Friday.",
			"At market prices that costs £0.74. Charged at once it would have cost £2.96: £2.22 more.",
			`<svg class="chart plan"`, `</i>it charges <i`, "Charge now", `value="07:00"`)

		status, page = e.wish(t, "act", "now", "hours", "2")
		want(t, status, page, 200, "It charges at once until 20:00.", "It charges 18:00 to 20:00,", "At market prices that costs £2.96.", "Back to the plan")

		status, page = e.wish(t, "act", "stop")
		want(t, status, page, 200, "Charging at once has ended.", "It charges 01:00 to 03:00,")

		status, page = e.wish(t, "act", "wish", "ready_by", "02:30", "kwh", "7.4")
		want(t, status, page, 200, "has the 7.4 kWh by 02:30 on Friday.", "Your wish counts from now on", "charges 01:", `value="02:30"`)

		e.now = e.now.Add(400 * time.Millisecond) // no clock stands at whole seconds
		status, page = e.wish(t, "act", "skip")
		want(t, status, page, 200, "Nothing is asked for, so it does not charge.", "Nothing is asked for until 02:30 on Friday, 16 January.", "Charge as usual again")
		refuse(t, page, "Skip tonight")
		refuse(t, page, `class="chart plan"`) // of nothing

		status, page = e.post(t, e.page+"/away", "act", "back")
		want(t, status, page, 200, "Welcome back.", "has the 7.4 kWh by 02:30 on Friday.", "Skip tonight")

		// What does not suffice is said.
		status, page = e.wish(t, "act", "wish", "ready_by", "19:00", "kwh", "20")
		want(t, status, page, 200, "That is not enough: of the 20.0 kWh by 19:00 on Thursday, 12.6 will be missing.")
	})
}

// Where no price is known the page says so, in place of a reason.
func TestHousehold_NoPrices(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.now = e.now.Add(48 * time.Hour)
		e.page = e.link(t, reward.LinkOptions{})
		e.plugIn(t)
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "It charges 18:00 to 20:00, and has the 14.8 kWh by 07:00 on Sunday.", "No prices are known for that time yet.")
		refuse(t, page, "At market prices")
		refuse(t, page, "costs the market least")
	})
}

// The plan's carbon dioxide is compared with that of charging at once where all of it is known.
func TestHousehold_Carbon(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		_, page := e.get(t, e.page)
		refuse(t, page, "CO₂")

		var known []flex.Carbon
		for p := flex.PeriodAt(e.now); len(known) < 26; p = p.Add(1) {
			grams := 300
			if p.Start().Hour() < 6 {
				grams = 100
			}
			known = append(known, flex.Carbon{Period: p, Grams: grams})
		}

		err := e.db.WriteAll(t.Context(), func(all *store.All) error { return all.PutCarbon(t.Context(), known) })
		if err != nil {
			t.Fatal(err)
		}

		status, page := e.get(t, e.page)
		want(t, status, page, 200, "It carries 1.5 kg of CO₂, 3.0 kg less than at once.")
		status, page = e.wish(t, "act", "now", "hours", "2")
		want(t, status, page, 200, "It carries 4.4 kg of CO₂.")
	})
}

// What cannot be done is said on the page, and changes nothing.
func TestHousehold_Faults(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		other := e.As(e.org)
		elsewhere := other.Asset(other.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		battery := e.Asset(e.site, flex.Battery, 3000)

		for name, tt := range map[string]struct {
			pairs []string
			says  string
		}{
			"no hours":       {[]string{"act", "now", "hours", "x"}, "Say for how many hours"},
			"no time at all": {[]string{"act", "now", "hours", "0"}, "Say for how many hours"},
			"25 hours":       {[]string{"act", "now", "hours", "25"}, "Charge at once for 24 hours at most"},
			"no time of day": {[]string{"act", "wish", "ready_by", "25:00"}, "Write the time as in 07:30"},
			"200.1 kWh":      {[]string{"act", "wish", "kwh", "200.1"}, "from 0 to 200"},
			"less than none": {[]string{"act", "wish", "kwh", "-1"}, "from 0 to 200"},
			"not a number":   {[]string{"act", "wish", "kwh", "NaN"}, "from 0 to 200"},
			"nothing":        {[]string{"act", "wish"}, "Say what you wish"},
			"another's":      {[]string{"asset", elsewhere.String(), "act", "now", "hours", "1"}, "No such car or charger is at this home"},
			"a battery":      {[]string{"asset", battery.String(), "act", "now", "hours", "1"}, "No such car or charger is at this home"},
			"no asset":       {[]string{"asset", "x", "act", "now", "hours", "1"}, "No such car or charger is at this home"},
		} {
			t.Run(name, func(t *testing.T) {
				status, page := e.wish(t, tt.pairs...)
				want(t, status, page, 422, tt.says, "It charges 01:00 to 03:00,")

				field, text := tt.pairs[len(tt.pairs)-2], tt.pairs[len(tt.pairs)-1]
				if ours := tt.pairs[0] == "act" && field != "act"; ours && !strings.Contains(page, `value="`+text+`"`) {
					t.Errorf("the field %s does not keep %q", field, text)
				}
			})
		}

		status, page := e.wish(t, "act", "wish", "kwh", "200")
		want(t, status, page, 200, "Thank you.")

		status, page = e.get(t, e.page+"/nowhere")
		want(t, status, page, 404, "Back to your page")
	})
}

// The morning after, a plan is shown as what was planned: first until ready-by, then as over, until the car leaves.
func TestHousehold_Morning(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)

		e.now = time.Date(2026, 1, 16, 2, 0, 0, 0, time.UTC)
		e.page = e.link(t, reward.LinkOptions{})
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "It charges 01:00 to 03:00, and has the 14.8 kWh by 07:00 on Friday.")

		e.now = time.Date(2026, 1, 16, 3, 0, 0, 0, time.UTC)
		e.page = e.link(t, reward.LinkOptions{})
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "It was planned to charge 01:00 to 03:00, and to have the 14.8 kWh by 07:00 on Friday.",
			"Nothing more is planned until then.")

		e.now = time.Date(2026, 1, 16, 7, 0, 0, 0, time.UTC)
		e.page = e.link(t, reward.LinkOptions{})
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "It was planned to charge 01:00 to 03:00, for the 14.8 kWh by 07:00 on Friday.",
			"That plan is over", "At market prices the plan cost £0.74, and charging at once would have cost £2.96: £2.22 more.")
		refuse(t, page, "It charges", "has the 14.8 kWh")
	})
}

// A household that has told nothing yet may wish: what it leaves out is what was assumed.
func TestHousehold_FirstWish(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		if err := e.control.Event(t.Context(), e.org, e.asset, control.Event{Kind: control.PlugIn}); err != nil {
			t.Fatal(err)
		}

		status, page := e.get(t, e.page)
		want(t, status, page, 200, "has the 29.6 kWh by 07:00 on Friday")
		status, page = e.wish(t, "act", "wish", "ready_by", "06:00")
		want(t, status, page, 200, "has the 29.6 kWh by 06:00 on Friday")
	})
}

// A wish for another time leaves the amount as it is, which the page shows rounded.
func TestHousehold_WishOfOne(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		by := flex.WallTime(7 * time.Hour)
		err := e.control.Event(t.Context(), e.org, e.asset, control.Event{
			Kind: control.IntentUpdate, Intent: &flex.Intent{Need: 12_340, ReadyByLocal: &by, Mode: flex.Minimise},
		})
		if err != nil {
			t.Fatal(err)
		}

		status, page := e.get(t, e.page)
		want(t, status, page, 200, `name="ready_by_was" value="07:00"`, `name="kwh_was" value="12.3"`)
		status, page = e.wish(t, "act", "wish", "ready_by", "06:00", "ready_by_was", "07:00", "kwh", "12.3", "kwh_was", "12.3")
		want(t, status, page, 200, "has the 12.3 kWh by 06:00 on Friday.")

		in, err := e.control.Intent(t.Context(), e.org, e.asset)
		if err != nil || in.Need != 12_340 {
			t.Errorf("%v, need %d", err, in.Need)
		}
	})
}

// Two chargers and a battery: each has its own part of the page, and a wish is of one.
func TestHousehold_Several(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		second := e.Asset(e.site, flex.ElectricVehicle, 3600)
		e.Asset(e.site, flex.Battery, 3000)
		e.plugIn(t)

		first := e.asset
		e.asset = second
		e.plugIn(t)
		status, page := e.wish(t, "act", "now", "hours", "1")
		want(t, status, page, 200, "Your charger, x"+first.String(), "Your car, x"+second.String(), "It charges 01:00 to 03:00,", "It charges at once until 19:00.", "There is no plan for your battery yet.")

		if n := strings.Count(page, `value="now"`); n != 1 {
			t.Errorf("%d cars can be told to charge now, want 1", n)
		}
	})
}

// Two planned batteries have one bill of the home between them; one, a bill of its own.
func TestHousehold_Batteries(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		add := func() {
			t.Helper()
			id := e.Asset(e.site, flex.Battery, 3000)
			e.Exec(`UPDATE asset SET capacity_wh = 10000 WHERE id = $1`, id.Bytes())
			tariff := flex.Tariff{Zone: "Europe/London", Type: flex.DualRate, OffPeak: "00:00-05:30"}
			if err := e.db.Write(t.Context(), e.org, func(tx *store.Tx) error { return tx.PutTariff(t.Context(), id, tariff) }); err != nil {
				t.Fatal(err)
			}

			if _, err := e.control.PlanBatteries(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		const one, both = "then left in the battery", "then left in the batteries"
		add()
		_, page := e.get(t, e.page)
		want(t, 200, page, 200, "What your battery does next:", one)
		refuse(t, page, both, "Your batteries together")

		add()
		_, page = e.get(t, e.page)
		want(t, 200, page, 200, "Your batteries together", both)
		refuse(t, page, one)
		if n := strings.Count(page, "is expected to"); n != 1 {
			t.Errorf("the home has %d bills", n)
		}
	})
}

// The plan is shown by the clocks of the tariff across the night on which they change.
func TestHousehold_ClockChange(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.now = time.Date(2026, 3, 28, 18, 0, 0, 0, time.UTC)
		e.publish(t)
		e.page = e.link(t, reward.LinkOptions{})
		e.plugIn(t)

		// 01:00 UTC is 02:00 by the clocks, from that instant on.
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "It charges 02:00 to 04:00, and has the 14.8 kWh by 07:00 on Sunday.")

		e.now = time.Date(2026, 3, 29, 5, 59, 59, 0, time.UTC)
		_, page = e.get(t, e.link(t, reward.LinkOptions{}))
		want(t, 200, page, 200, "by 07:00 on Sunday. Nothing more is planned until then.")
		e.now = e.now.Add(time.Second)
		_, page = e.get(t, e.link(t, reward.LinkOptions{}))
		want(t, 200, page, 200, "It was planned to charge 02:00 to 04:00, for the 14.8 kWh by 07:00 on Sunday. That plan is over")
	})
}

// In the night that repeats an hour both of its times are told apart.
func TestHousehold_HourRepeated(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.now = time.Date(2026, 10, 24, 17, 0, 0, 0, time.UTC)
		e.publish(t) // £50 from 01:00 UTC, the second time that the clocks show 01:00
		e.page = e.link(t, reward.LinkOptions{})
		e.plugIn(t)
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "It charges 01:00 GMT to 03:00, and has the 14.8 kWh by 07:00 on Sunday.")

		e.now = time.Date(2026, 10, 25, 6, 30, 0, 0, time.UTC) // 06:30: 07:00 by summer's clocks is no end
		_, page = e.get(t, e.link(t, reward.LinkOptions{}))
		want(t, 200, page, 200, "by 07:00 on Sunday. Nothing more is planned until then.")
		e.now = e.now.Add(30 * time.Minute)
		_, page = e.get(t, e.link(t, reward.LinkOptions{}))
		want(t, 200, page, 200, "That plan is over")
	})
}

// A car that uses every cheap hour charges then because they are cheap, and not when the market's price is least.
func TestHousehold_AllCheapHours(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		cheap := control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{OffPeak: "00:00-04:00", Zone: "Europe/London", Type: "dual_rate"}}
		if err := e.control.Event(t.Context(), e.org, e.asset, cheap); err != nil {
			t.Fatal(err)
		}

		for mode, chosen := range map[flex.ChargingMode]bool{flex.Minimise: true, flex.Maximise: false} {
			by := flex.WallTime(7 * time.Hour)
			err := e.control.Event(t.Context(), e.org, e.asset, control.Event{
				Kind: control.IntentUpdate, Intent: &flex.Intent{Need: 7_400, ReadyByLocal: &by, Mode: mode},
			})
			if err != nil {
				t.Fatal(err)
			}

			_, page := e.get(t, e.link(t, reward.LinkOptions{}))
			want(t, 200, page, 200, "by 07:00 on Friday.")
			if said := strings.Contains(page, "electricity costs the market least"); said != chosen {
				t.Errorf("%s: the market's price is given as the reason: %v", mode, said)
			}
		}
	})
}

// The page tells of tonight alone: what is over is not said to come, whichever of two cars it is of.
func TestHousehold_NightPasses(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		early := e.asset
		e.plugIn(t)
		e.asset = e.Asset(e.site, flex.ElectricVehicle, 7400)
		e.plugIn(t)
		status, page := e.wish(t, "act", "wish", "ready_by", "09:00", "kwh", "37") // five hours, of which four are at £50
		want(t, status, page, 200, "It charges 01:00 to 03:00,", "and has the 37.0 kWh by 09:00 on Friday.",
			"These are the times at which electricity costs the market least until then.")

		at := func(clock string) string {
			t.Helper()
			now, err := time.Parse(time.RFC3339, "2026-01-"+clock+":00Z")
			if err != nil {
				t.Fatal(err)
			}
			e.now = now
			e.page = e.link(t, reward.LinkOptions{})
			status, page := e.get(t, e.page)
			want(t, status, page, 200, "<h1>Your home</h1>")
			return page
		}

		want(t, 200, at("16T00:30"), 200, "It charges 01:00 to 03:00, and has the 14.8 kWh by 07:00 on Friday.")

		page = at("16T03:30")
		want(t, 200, page, 200, "It was planned to charge 01:00 to 03:00, and to have the 14.8 kWh by 07:00 on Friday. Nothing more is planned until then.")
		refuse(t, page, "It charges 01:00 to 03:00")

		page = at("16T07:00") // the very instant
		want(t, 200, page, 200, "It was planned to charge 01:00 to 03:00, for the 14.8 kWh by 07:00 on Friday.", "The next plan is made when",
			"by 09:00 on Friday", `value="07:00"`)
		if n := strings.Count(page, "Skip tonight"); n != 1 {
			t.Errorf("%d cars can skip the night, want the one whose plan goes on", n)
		}

		page = at("16T09:00")
		refuse(t, page, "It charges", "Skip tonight", "It carries")
		_, page = e.get(t, e.page+"?lang=de")
		want(t, 200, page, 200, "Es sollte 01:00 bis 03:00 laden, für die 14,8 kWh bis 07:00 am Freitag.", "Der nächste Plan entsteht")
		e.get(t, e.page+"?lang=en")

		// A wish makes the next plan, of its car alone.
		e.publish(t)
		e.asset = early
		status, page = e.wish(t, "act", "wish", "ready_by", "07:00")
		want(t, status, page, 200, "by 07:00 on Saturday.", "by 09:00 on Friday.", "That plan is over")
		status, page = e.wish(t, "act", "now", "hours", "1")
		want(t, status, page, 200, "It charges at once until 10:00.")
		want(t, 200, at("16T10:00"), 200, "Charge now")
	})
}

// A hot-water tank and a heat pump are at the home: what they are planned to do is said, once they are planned.
func TestHousehold_Heaters(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		tank := e.Asset(e.site, flex.HotWaterTank, 3000)
		e.Asset(e.site, flex.HeatPump, 3000)
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "Your hot water, ", "Your heating, ", "There is no plan for it: it heats as it is set.")

		err := e.db.Write(t.Context(), e.org, func(tx *store.Tx) error {
			return tx.PutTariff(t.Context(), tank, flex.Tariff{Zone: "Europe/London", Type: "single_rate"})
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.control.PlanTanks(t.Context()); err != nil {
			t.Fatal(err)
		}

		status, page = e.get(t, e.page)
		want(t, status, page, 200, "It heats ", "Your water is then expected to be between ", " °C, until ")
	})
}

// A page that is opened in German stays German, words, days and what was wrong.
func TestHousehold_German(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.plugIn(t)
		status, page := e.get(t, e.page+"?lang=de")
		want(t, status, page, 200, `<html lang="de">`, "Ihr Zuhause", "Es lädt 01:00 bis 03:00 und hat die 14,8 kWh bis 07:00 am Freitag.", "Jetzt laden", "Noch £10.00, bis Sie sich")

		status, page = e.wish(t, "act", "now", "hours", "x")
		want(t, status, page, 422, "Geben Sie an, für wie viele Stunden, zum Beispiel 2.")
		status, page = e.wish(t, "act", "wish", "kwh", "7,4")
		want(t, status, page, 200, "hat die 7,4 kWh bis 07:00 am Freitag.", `value="7,4"`)
		status, page = e.wish(t, "act", "skip")
		want(t, status, page, 200, "Es lädt nichts, bis der Plan endet.", "Bis 07:00 am Freitag, 16. Januar wird nichts gebraucht.")

		for path, part := range map[string]string{"/history": "Nach Monaten", "/statement": "1. Januar 2026 bis 15. Januar 2026", "/consent": "Planung, wann Ihr Auto lädt", "/nowhere": "Zurück zu Ihrer Seite"} {
			_, page = e.get(t, e.page+path)
			want(t, status, page, status, `<html lang="de">`, part)
		}

		status, page = e.get(t, e.page+"?lang=en")
		want(t, status, page, 200, `<html lang="en">`, "Your home")
	})
}
