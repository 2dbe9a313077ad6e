package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
	"flexd/sim"
)

// A valid MPAN of each kind, in the meters that the fixture imports.
const (
	mpanHalfHourly = "1099000010005"
	mpanOther      = "1299000012001"
	mpanNotSettled = "1499000014008"
)

// line is a whole flexd over real sockets: its app, an organisation's client, and the
// organisation's endpoint with one charger.
type line struct {
	testing.TB
	app      *app.App
	client   *client.Client
	base     string
	org      flex.Org
	charger  *sim.Charger
	heard    chan sim.Received
	endpoint *sim.Endpoint
	down     atomic.Bool // the endpoint answers 503
	began    time.Time
	ahead    atomic.Int64 // of the machine's clock since began, in microseconds from the epoch
}

// Now is the true clock of the story: it runs as the machine's does, from another date.
func (l *line) Now() time.Time {
	return time.UnixMicro(l.ahead.Load()).Add(time.Since(l.began))
}

// tick moves the true clock, and with it every organisation's, once what is under way is
// recorded: an attempt that the clock jumps over counts as lost until its lease runs out.
func (l *line) tick(d time.Duration) {
	l.runUntilIdle()
	l.ahead.Add(d.Microseconds())
}

// until moves the clock to an instant ahead.
func (l *line) until(at time.Time) {
	l.runUntilIdle()
	l.ahead.Add(at.Sub(l.Now()).Microseconds())
}

// start opens flexd on the store at the instant and serves it until the test ends.
func start(
	t testing.TB,
	url string,
	at time.Time,
) *line {
	t.Helper()
	l := &line{TB: t, heard: make(chan sim.Received, 100), charger: &sim.Charger{ExternalID: "leaf", Power: 7400}}
	l.began = time.Now()
	l.ahead.Store(at.UnixMicro())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h, err := app.Open(ctx, app.Settings{
		Database: url, Keys: storetest.Keys(t), Environment: flex.Sandbox, AllowPrivateEndpoints: true, Now: l.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}

	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, socket) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		h.Push.Close()
		storetest.Close(t, h.DB)
	})
	l.app, l.base = h, "http://"+socket.Addr().String()
	l.seed()
	return l
}

func (l *line) seed() {
	ctx := l.Context()
	org, password, err := l.app.Access.AddOrg(ctx, "Acme", "acme", "")
	if err != nil {
		l.Fatal(err)
	}

	l.org, l.client = org, client.New(l.base, "acme", password.Reveal())
	l.endpoint = sim.NewEndpoint("", l.charger)
	l.endpoint.Now = l.Now
	l.endpoint.Received = func(h sim.Received) { l.heard <- h }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		l.endpoint.ServeHTTP(w, r)
	}))

	l.Cleanup(server.Close)
	var made wire.EndpointResponse
	err = l.client.Do(ctx, "PUT", "/endpoints/schedule", nil, wire.EndpointRequest{URL: server.URL + "/{external_id}"}, &made)
	if err != nil || made.Secret == "" {
		l.Fatalf("set the endpoint: %+v, %v", made, err)
	}

	l.endpoint.Secret = made.Secret
	meters := "mpan,direction,address,postcode,uprn,energised,half_hourly_settled,domestic,supplier_mpid,supplier_name,gsp_group\n" +
		mpanHalfHourly + ",import,1 High Street,SW1A 1AA,1,true,true,true,EELC,Supplier,_C\n" +
		mpanOther + ",import,2 High Street,SW1A 1AA,2,true,true,true,EELC,Supplier,_C\n" +
		mpanNotSettled + ",import,3 High Street,SW1A 1AA,3,true,false,true,EELC,Supplier,_C\n"
	if _, err := l.app.ImportMeters(ctx, strings.NewReader(meters), nil); err != nil {
		l.Fatal(err)
	}
}

// onboarding is a request that works.
func onboarding(mpan string, p client.Proposition) client.OnboardRequest {
	power := 7.4
	return client.OnboardRequest{
		Site: client.SiteRequest{
			MPAN: mpan, Postcode: "SW1A 1AA", StreetAddress: "1 High Street", Email: "resident@example.com",
			GaveBoundaryMeterConsentAt: client.At(time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)),
		},
		Assets:      []client.OnboardingAssetRequest{{ExternalID: "leaf", Type: client.AssetCharger, Properties: &client.AssetProperties{PowerKW: &power}}},
		Proposition: p,
	}
}

func (l *line) onboard(mpan string, p client.Proposition) (client.SiteID, client.AssetID) {
	l.Helper()
	r, err := l.client.Onboard(l.Context(), onboarding(mpan, p))
	if err != nil {
		l.Fatal(err)
	}
	if !r.Site.SiteCreated || len(r.Assets) != 1 || !r.Assets[0].AssetCreated || r.Enrolment.Status != "enrolled" {
		l.Fatalf("onboarded as %+v", r)
	}
	return r.Site.SiteID, r.Assets[0].AssetID
}

// must fails the test on an error.
func (l *line) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// patience is how long a line waits for what must come, on however busy a machine.
const patience = 2 * time.Minute

// pushed waits for the next push. A retry comes by the true clock, six seconds after the
// first attempt at the latest.
func (l *line) pushed() sim.Received {
	l.Helper()
	select {
	case h := <-l.heard:
		return h
	case <-time.After(patience):
		var page json.RawMessage
		l.must(l.client.Do(l.Context(), "GET", "/deliveries", nil, nil, &page))
		l.Fatalf("no push came by %v; deliveries: %s", l.Now(), page)
	}
	panic("not reached")
}

// runUntilIdle has all that is due done, and every push that is due tried.
func (l *line) runUntilIdle() {
	l.Helper()
	l.must(l.app.RunUntilIdle(l.Context()))
	l.must(l.app.Push.Drain(l.Context(), l.org.ID))
}

// credited waits until the site has a transaction: the serving process's own job may be at
// the stay while ours finds nothing left to do.
func (l *line) credited(site client.SiteID) client.TransactionDataResponse {
	l.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		l.runUntilIdle()
		h, err := l.client.Transactions(l.Context(), site, client.Page{})
		l.must(err)
		if h.TotalCount > 0 || time.Now().After(end) {
			return h
		}
	}
}

// quiet checks that nothing is on its way: after the rounds have done all that is due, no
// push has come.
func (l *line) quiet() {
	l.Helper()
	l.runUntilIdle()
	select {
	case h := <-l.heard:
		l.Errorf("an unexpected push: %s", h.Body)
	default:
	}
}

func tariffUTC() client.TariffUpdateEventRequest {
	return client.TariffUpdateEventRequest{Tariff: client.Tariff{OffPeakTimes: "00:00-05:30, 23:30-24:00", Timezone: "UTC", TariffType: client.TariffDualRate}}
}

func intent(kwh float64, mode client.ChargingMode) client.IntentEventRequest {
	return client.IntentEventRequest{Intent: client.Intent{
		EnergyRequiredKWh: kwh, ReadyBy: client.At(time.Date(2026, 4, 15, 7, 0, 0, 0, time.UTC)), ChargingMode: mode,
	}}
}

// evening is when scenario 1 plugs in.
var evening = time.Date(2026, 4, 14, 22, 0, 0, 0, time.UTC)

// flat publishes one price for two days from the evening, except for those named.
func (l *line) prices(except map[time.Time]float64) {
	l.Helper()
	err := l.app.DB.WriteAll(l.Context(), func(all *store.All) error {
		span := flex.Span{From: evening.Add(-24 * time.Hour), To: evening.Add(48 * time.Hour)}
		var prices []flex.PricedPeriod
		for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
			price, ok := except[p.Start()]
			if !ok {
				price = 100
			}
			prices = append(prices, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(price), Known: true})
		}

		_, err := all.AddPublication(l.Context(), store.Publication{Source: "test", PublishedAt: all.Now(), Span: span}, prices)
		return err
	})
	l.must(err)
}

// each runs the story on both engines.
func each(t *testing.T, story func(*line)) {
	storetest.EachURL(t, func(t *testing.T, url string) { story(start(t, url, evening.Add(-10*time.Minute))) })
}

func TestLine_OnboardIsAtomic(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		bad := onboarding(mpanNotSettled, client.PropositionFullAssetSchedule) // not eligible: the enrolment fails last
		if _, err := l.client.Onboard(ctx, bad); client.StatusOf(err) != 422 {
			l.Errorf("a site that is not eligible: %v", err)
		}

		sites, err := l.client.Sites(ctx, "", "", client.Page{})
		l.must(err)
		assets, err := l.client.Assets(ctx, client.Page{})
		l.must(err)
		if sites.TotalNumSites != 0 || assets.TotalNumAssets != 0 {
			l.Errorf("a failed onboarding left %d sites and %d assets", sites.TotalNumSites, assets.TotalNumAssets)
		}

		l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		again, err := l.client.Onboard(ctx, onboarding(mpanHalfHourly, client.PropositionFullAssetSchedule))
		l.must(err)
		if again.Site.SiteCreated || again.Assets[0].AssetCreated || again.Enrolment.Status != "already_enrolled" {
			l.Errorf("onboarded again as %+v", again)
		}
	})
}

func TestLine_Scenario1ByteForByte(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		_, asset := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		l.must(l.client.UpdateTariff(ctx, asset, tariffUTC()))
		l.must(l.client.SetIntent(ctx, asset, intent(30, client.ChargingMaximise)))
		l.quiet() // nothing is sent to a charger without a car
		l.until(evening)

		l.must(l.client.PlugIn(ctx, asset, client.PlugInEventRequest{}))
		h := l.pushed()
		var got struct {
			CSChargingProfiles struct {
				ChargingSchedule json.RawMessage `json:"chargingSchedule"`
				StackLevel       int             `json:"stackLevel"`
			} `json:"csChargingProfiles"`
		}

		l.must(json.Unmarshal(h.Body, &got))
		const want = `{"duration":32400,"startSchedule":"2026-04-14T22:00:00Z","chargingRateUnit":"W","chargingSchedulePeriod":[` +
			`{"startPeriod":0,"limit":0.0,"numberPhases":1},{"startPeriod":5400,"limit":99999.0,"numberPhases":1},` +
			`{"startPeriod":27000,"limit":0.0,"numberPhases":1}],"minChargingRate":0.0}`
		if !bytes.Equal(got.CSChargingProfiles.ChargingSchedule, []byte(want)) || got.CSChargingProfiles.StackLevel != 1100 {
			l.Errorf("pushed %s\nwant    %s", got.CSChargingProfiles.ChargingSchedule, want)
		}

		l.quiet()
		event, err := flex.ParseID[struct{}](h.EventID)
		l.must(err)
		for _, status := range []client.CallbackStatus{client.CallbackReceived, client.CallbackAccepted, client.CallbackExecuted} {
			l.must(l.client.Callback(ctx, asset, client.EventID(event), client.EventResponse{Timestamp: client.At(l.Now()), Status: status}))
		}
		var d wire.DeliveryDetail
		l.must(l.client.Do(ctx, "GET", "/deliveries/"+h.EventID, nil, nil, &d))
		if d.CallbackStatus != flex.Executed || len(d.Attempts) != 1 || d.Attempts[0].StatusCode != 204 {
			l.Errorf("the delivery is kept as %+v", d)
		}
	})
}

func TestLine_ChangesWhilePluggedIn(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		_, asset := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		l.must(l.client.UpdateTariff(ctx, asset, tariffUTC()))
		l.must(l.client.SetIntent(ctx, asset, intent(10, client.ChargingMinimise)))
		l.prices(nil)
		l.until(evening)
		l.must(l.client.PlugIn(ctx, asset, client.PlugInEventRequest{}))
		first := l.charging(l.pushed())

		l.must(l.client.SetIntent(ctx, asset, intent(20, client.ChargingMinimise)))
		second := l.charging(l.pushed())
		if len(second) <= len(first) {
			l.Errorf("more energy is planned as %v, before %v", second, first)
		}

		l.tick(time.Minute)
		l.must(l.client.UpdateTariff(ctx, asset, client.TariffUpdateEventRequest{Tariff: client.Tariff{OffPeakTimes: "02:00-06:00", Timezone: "UTC"}}))
		if got := l.charging(l.pushed()); got[0].Before(evening.Add(4 * time.Hour)) {
			l.Errorf("charges from %v although off-peak begins at 02:00", got[0])
		}

		l.tick(10 * time.Minute) // past the rule of at most one market push in five minutes
		cheap := map[time.Time]float64{}
		for i := range 6 {
			cheap[evening.Add(5*time.Hour+time.Duration(i)*30*time.Minute)] = -50
		}
		l.prices(cheap)
		if got := l.charging(l.pushed()); !got[0].Equal(evening.Add(5 * time.Hour)) {
			l.Errorf("charges from %v although the prices are best from 03:00", got[0])
		}

		l.must(l.client.PlugOut(ctx, asset))
		l.tick(10 * time.Minute)
		l.prices(nil)
		l.must(l.client.SetIntent(ctx, asset, intent(30, client.ChargingMinimise)))
		l.quiet()
	})
}

// charging returns the half-hours in which a pushed profile lets the car charge.
func (l *line) charging(h sim.Received) (at []time.Time) {
	l.Helper()
	p, err := ocpp.Parse(h.Body)
	l.must(err)
	for q := flex.PeriodAt(p.Span().From); q.Start().Before(p.Span().To); q = q.Add(1) {
		if p.LimitAt(q.End().Add(-time.Minute)) > 0 {
			at = append(at, q.Start())
		}
	}
	if len(at) == 0 {
		l.Fatalf("the profile lets nothing be charged: %s", h.Body)
	}
	return at
}

func TestLine_ReadingsAndReward(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		site, asset := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		l.must(l.client.UpdateTariff(ctx, asset, tariffUTC()))
		l.must(l.client.SetIntent(ctx, asset, intent(30, client.ChargingMaximise)))
		l.prices(nil)
		l.until(evening)
		l.charger.Plug(&sim.Car{Name: "leaf", Rate: 7400, Room: 30_000}, evening)
		l.must(l.client.PlugIn(ctx, asset, client.PlugInEventRequest{}))
		l.pushed()

		l.tick(9 * time.Hour)
		l.charger.RunTo(l.Now(), func(flex.Period) flex.Price { return 100e6 })
		var readings []client.ReadingDataPoint
		for _, m := range l.charger.Meter(l.Now()) {
			readings = append(readings, client.ReadingDataPoint{
				AssetID: asset, StartTimestamp: client.At(m.Period.Start()), EndTimestamp: client.At(m.Period.End()),
				Value: m.Energy / 1000, Label: client.LabelChargerEnergy,
			})
		}
		stranger := readings[0]
		stranger.AssetID = client.AssetID{0xff}
		verdicts, err := l.client.PostReadings(ctx, append(readings, stranger))
		l.must(err)

		for i, v := range verdicts.Responses {
			if ours := i < len(readings); v.Accepted != ours || (v.Error == "") != ours {
				l.Errorf("reading %d: %+v", i, v)
			}
		}
		if len(verdicts.Responses) != len(readings)+1 {
			l.Errorf("%d verdicts on %d readings", len(verdicts.Responses), len(readings)+1)
		}

		l.must(l.client.PlugOut(ctx, asset))
		l.tick(2 * time.Hour)
		got := l.credited(site)
		if got.TotalCount != 1 || len(got.Transactions) != 1 {
			l.Fatalf("one finished session made %+v", got)
		}
		x := got.Transactions[0]
		if x.CreditPence <= 0 || x.PlugSessionID.IsZero() || x.CreditableKWh == nil || *x.CreditableKWh < 29.9 || *x.CreditableKWh > 30.1 {
			l.Errorf("the session was credited as %+v", x)
		}
	})
}

func TestLine_LimitedPause(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		_, asset := l.onboard(mpanHalfHourly, client.PropositionLimitedPause)
		l.prices(map[time.Time]float64{evening.Add(3 * time.Hour): 400, evening.Add(-time.Hour): 900})
		in := client.PlugInScheduleEventRequest{ChargingSchedule: []client.ChargingScheduleBlock{{
			StartTimestamp: "2026-04-14T22:00:00+00:00", EndTimestamp: "2026-04-15T06:00:00+00:00",
		}}}
		got, err := l.client.PlugInSchedule(ctx, asset, in)
		l.must(err)
		want := []client.ChargingScheduleBlock{
			{StartTimestamp: "2026-04-14T22:00:00+00:00", EndTimestamp: "2026-04-15T01:00:00+00:00"},
			{StartTimestamp: "2026-04-15T01:30:00+00:00", EndTimestamp: "2026-04-15T06:00:00+00:00"},
		}
		if len(got.ModifiedChargingSchedule) != 2 || got.ModifiedChargingSchedule[0] != want[0] || got.ModifiedChargingSchedule[1] != want[1] {
			l.Errorf("paused as %+v", got)
		}
	})

	each(t, func(l *line) { // no price is known: nothing is worth a pause
		_, asset := l.onboard(mpanHalfHourly, client.PropositionLimitedPause)
		in := client.PlugInScheduleEventRequest{ChargingSchedule: []client.ChargingScheduleBlock{{
			StartTimestamp: "2026-04-14T22:00:00Z", EndTimestamp: "2026-04-15T06:00:00Z",
		}}}
		got, err := l.client.PlugInSchedule(l.Context(), asset, in)
		l.must(err)
		if len(got.ModifiedChargingSchedule) != 1 || got.ModifiedChargingSchedule[0] != in.ChargingSchedule[0] {
			l.Errorf("came back as %+v", got)
		}
	})

	each(t, func(l *line) { // enrolled in the other proposition alone
		_, asset := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		_, err := l.client.PlugInSchedule(l.Context(), asset, client.PlugInScheduleEventRequest{ChargingSchedule: []client.ChargingScheduleBlock{{
			StartTimestamp: "2026-04-14T22:00:00Z", EndTimestamp: "2026-04-15T06:00:00Z",
		}}})
		if client.StatusOf(err) != 403 {
			l.Errorf("without consent: %v", err)
		}
	})
}

func TestLine_EnrolmentStates(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		site, _ := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		enrol := func(override bool) string {
			r, err := l.client.Enrol(ctx, site, client.EnrolRequest{Proposition: client.PropositionFullAssetSchedule, OverrideWithdrawal: override})
			if err != nil {
				return err.Error()[:3]
			}
			return r.Status
		}

		unenrol := func() string {
			r, err := l.client.Unenrol(ctx, site, client.UnenrolRequest{Proposition: client.PropositionFullAssetSchedule})
			if err != nil {
				return err.Error()[:3]
			}
			return r.Status
		}
		for i, step := range []struct{ got, want string }{
			{enrol(false), "already_enrolled"},
			{unenrol(), "unenrolled"},
			{unenrol(), "already_unenrolled"},
			{enrol(false), "422"},
			{enrol(true), "enrolled"},
			{enrol(true), "already_enrolled"},
		} {
			if step.got != step.want {
				l.Errorf("step %d: %s, want %s", i, step.got, step.want)
			}
		}
	})
}

func TestLine_EndpointDown(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		_, asset := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		l.down.Store(true)
		l.must(l.client.PlugIn(ctx, asset, client.PlugInEventRequest{}))
		l.runUntilIdle()
		l.must(l.client.SetIntent(ctx, asset, intent(12, client.ChargingMinimise)))
		l.runUntilIdle()

		// Past the longest backoff, at once: with the jobs run in between, a slow machine would have a retry be due and taken too early.
		l.down.Store(false)
		l.ahead.Add((10 * time.Minute).Microseconds())
		l.runUntilIdle()
		l.pushed()          // the newest alone: it took the place of the first
		again := l.pushed() // for the 10 minutes of it that were over when it was taken
		if !strings.Contains(string(again.Body), `"startSchedule":"2026-04-14T22:`) {
			l.Errorf("planned again: %s", again.Body)
		}
		l.quiet()
	})
}
