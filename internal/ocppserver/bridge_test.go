package ocppserver_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"flexd/client"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/ocppserver"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// evening is when the stories begin.
var evening = time.Date(2026, 4, 14, 22, 0, 0, 0, time.UTC)

// bench is a whole flexd and a bridge to it, over real sockets, with one asset CP1.
type bench struct {
	*testing.T
	app    *app.App
	org    flex.OrgID
	client *client.Client
	asset  client.AssetID
	flexd  string // its address
	url    string // of the chargers' listener
	push   string // of the endpoint
	began  time.Time
	ahead  atomic.Int64
	halt   func()      // ends the bridge
	tls    *tls.Config // of the next bridge, nil for none
}

func (s *bench) now() time.Time {
	return time.UnixMicro(s.ahead.Load()).Add(time.Since(s.began))
}

// tick moves the clock when no push is under way, which would look slow to flexd.
func (s *bench) tick(d time.Duration) {
	s.Helper()
	s.must(s.app.Push.Drain(s.Context(), s.org))
	s.ahead.Add(d.Microseconds())
}

// patience is how long a test waits for what must come, on however busy a machine. A car that
// comes while the end of another's session is reported waits for a minute and a second.
const patience = 3 * time.Minute

// quick is a bridge that waits for nothing that a test would have to wait for. It greets
// whoever boots; bootless is for chargers that connect without.
var (
	quick = ocppserver.Timing{
		Call: time.Minute, Configure: time.Hour, PlugOut: 50 * time.Millisecond, Ping: time.Hour,
		Retry: 50 * time.Millisecond, Report: 10 * time.Millisecond, Late: 50 * time.Millisecond,
	}
	bootless = ocppserver.Timing{
		Call: time.Minute, Configure: 50 * time.Millisecond, PlugOut: 50 * time.Millisecond, Ping: time.Hour,
		Retry: 50 * time.Millisecond, Report: 10 * time.Millisecond, Late: 50 * time.Millisecond,
	}
)

func open(t *testing.T, settings ocppserver.Settings) *bench {
	t.Helper()
	return openIn(t, flex.Sandbox, settings, func(s *bench) { s.onboard(s.Context()) })
}

// openIn is open in an environment, with what onboard registers.
func openIn(t *testing.T, environment flex.Environment, settings ocppserver.Settings, onboard func(*bench)) *bench {
	t.Helper()
	s := &bench{T: t, began: time.Now()}
	s.ahead.Store(evening.UnixMicro())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	h, err := app.Open(ctx, app.Settings{
		Database: storetest.SQLite(t), Keys: storetest.Keys(t), Environment: environment, AllowPrivateEndpoints: true, Now: s.now,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})

	s.must(err)
	l := s.listen()
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		s.must(<-served)
		h.Push.Close()
		storetest.Close(t, h.DB)
	})

	s.app = h
	org, password, err := h.Access.AddOrg(ctx, "Acme", "acme", "")
	s.must(err)
	s.org = org.ID
	s.flexd = "http://" + l.Addr().String()
	s.client = client.New(s.flexd, "acme", password.Reveal())
	onboard(s)
	settings.Log = log
	s.bridge(settings)

	return s
}

func (s *bench) listen() net.Listener {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	return l
}

func (s *bench) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// onboard registers a site with the charger CP1, and what its user wants.
func (s *bench) onboard(ctx context.Context) {
	s.Helper()
	const mpan = "1099000010005"
	_, err := s.app.ImportMeters(ctx, strings.NewReader("mpan,direction,address,postcode,uprn,energised,half_hourly_settled,domestic,supplier_mpid,supplier_name,gsp_group\n"+
		mpan+",import,1 High Street,SW1A 1AA,1,true,true,true,EELC,Supplier,_C\n"), nil)

	s.must(err)
	power := 7.4
	r, err := s.client.Onboard(ctx, client.OnboardRequest{
		Site: client.SiteRequest{
			MPAN: mpan, Postcode: "SW1A 1AA", StreetAddress: "1 High Street", Email: "resident@example.com",
			GaveBoundaryMeterConsentAt: client.At(time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)),
		},
		Assets:      []client.OnboardingAssetRequest{{ExternalID: "CP1", Type: client.AssetCharger, Properties: &client.AssetProperties{PowerKW: &power}}},
		Proposition: client.PropositionFullAssetSchedule,
	})

	s.must(err)
	s.asset = r.Assets[0].AssetID
	s.must(s.client.UpdateTariff(ctx, s.asset, client.TariffUpdateEventRequest{Tariff: client.Tariff{OffPeakTimes: "00:00-05:30, 23:30-24:00", Timezone: "UTC", TariffType: client.TariffDualRate}}))
	s.intent(30)
}

func (s *bench) intent(kwh float64) {
	s.Helper()
	s.must(s.client.SetIntent(s.Context(), s.asset, client.IntentEventRequest{Intent: client.Intent{
		EnergyRequiredKWh: kwh, ReadyBy: client.At(time.Date(2026, 4, 15, 7, 0, 0, 0, time.UTC)), ChargingMode: client.ChargingMaximise,
	}}))
}

// bridge starts a bridge; halt ends it.
func (s *bench) bridge(settings ocppserver.Settings) {
	s.Helper()
	chargers, pushes := s.listen(), s.listen()
	s.url, s.push = "ws://"+chargers.Addr().String(), "http://"+pushes.Addr().String()
	if s.tls != nil {
		chargers = tls.NewListener(chargers, s.tls)
		s.url = "wss" + strings.TrimPrefix(s.url, "ws")
	}

	settings.Client, settings.EndpointURL, settings.Now = s.client, s.push, s.now
	if settings.Chargers == nil && settings.Password == "" && !settings.NoPassword {
		settings.Password = "shared"
	}

	if settings.Timing == (ocppserver.Timing{}) {
		settings.Timing = quick
	}

	if settings.Log == nil {
		settings.Log = slog.New(slog.NewTextHandler(s.Output(), nil))
	}

	b := ocppserver.New(settings)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx, chargers, pushes) }()
	ended := false
	s.halt = func() {
		if !ended {
			ended = true
			cancel()
			s.must(<-served)
		}
	}

	s.Cleanup(s.halt)
	s.eventually("flexd knows the endpoint", func() bool {
		var e client.EndpointResponse
		err := s.client.Do(s.Context(), "GET", "/endpoints/schedule", nil, nil, &e)

		return err == nil && strings.HasPrefix(e.URL, s.push)
	})
}

// eventually waits until something is so.
func (s *bench) eventually(what string, so func() bool) {
	s.Helper()
	deadline := time.After(patience)
	for t := time.NewTicker(10 * time.Millisecond); !so(); {
		select {
		case <-t.C:
		case <-deadline:
			s.Fatalf("it never came that %s", what)
		}
	}
}

// plugged reports whether flexd has an open session.
func (s *bench) plugged() bool {
	var page client.SessionResponsePage
	s.must(s.client.Do(s.Context(), "GET", "/entities/asset/"+s.asset.String()+"/sessions", nil, nil, &page))
	return len(page.Sessions) > 0 && page.Sessions[0].PluggedOutAt.IsZero()
}

func (s *bench) sessions() int {
	var page client.SessionResponsePage
	s.must(s.client.Do(s.Context(), "GET", "/entities/asset/"+s.asset.String()+"/sessions", nil, nil, &page))
	return page.TotalNumSessions
}

// readings returns what flexd knows of the label, in kWh.
func (s *bench) readings(label flex.Label) (kwh []float64) {
	s.Helper()
	day := flex.DayAt(evening)
	var rs []flex.Reading
	s.must(s.app.DB.Read(s.Context(), s.org, func(tx *store.Tx) (err error) {
		rs, err = tx.Readings(s.Context(), store.ReadingQuery{
			Assets: []flex.AssetID{flex.AssetID(s.asset)}, Labels: []flex.Label{label}, Days: []flex.Day{day, day.Add(1)},
		})

		return err
	}))

	slices.SortFunc(rs, func(a, b flex.Reading) int { return a.From.Compare(b.From) })
	for _, r := range rs {
		kwh = append(kwh, float64(r.Value)/1e6)
	}

	return kwh
}

// callback waits until the newest push has the status.
func (s *bench) callback(want client.CallbackStatus) {
	s.Helper()
	var last client.CallbackStatus
	s.eventually("the newest push is "+string(want), func() bool {
		var sc client.ScheduleResponse
		var d client.DeliveryDetail
		if s.client.Do(s.Context(), "GET", "/entities/asset/"+s.asset.String()+"/schedule", nil, nil, &sc) != nil {
			return false // flexd has not heard of the plug-in yet
		}

		if s.client.Do(s.Context(), "GET", "/deliveries/"+sc.EventID.String(), nil, nil, &d) != nil {
			return false
		}
		last = d.CallbackStatus
		return last == want
	})
}

// obeys checks that the charger would let a car charge in the off-peak hours alone.
func (s *bench) obeys(c *sim) {
	s.Helper()
	for at, want := range map[time.Duration]float64{
		time.Hour: 0, 85 * time.Minute: 0, 95 * time.Minute: 7400, 5 * time.Hour: 7400, 8 * time.Hour: 0, 10 * time.Hour: 7400,
	} {
		if got := c.allows(evening.Add(at)); got > want || got < want*0.93 {
			s.Errorf("at %v the charger allows %v W, want %v", evening.Add(at), got, want)
		}
	}
}

func TestBridge_PlugInToObeyed(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.say("Preparing")
	p := c.given()
	if p.Profile.Purpose != "TxDefaultProfile" || p.Profile.Stack != 8 || p.answer != "Accepted" {
		t.Errorf("without a transaction %+v", p)
	}

	s.obeys(c)
	s.callback(client.CallbackAccepted) // nothing is to be obeyed yet
	tx := c.start(1000)
	c.say("Charging")
	if p = c.given(); p.Profile.Purpose != "TxProfile" || p.Profile.Tx != tx || p.answer != "Accepted" {
		t.Errorf("with a transaction %+v", p)
	}

	s.obeys(c)

	s.intent(45) // a new schedule while it charges
	if p = c.given(); p.Profile.Purpose != "TxProfile" {
		t.Errorf("the new schedule came as %+v", p)
	}

	s.callback(client.CallbackExecuted)

	c.stop(tx, 31_000, "EVDisconnected")
	c.say("Available")
	s.tick(time.Second)
	s.eventually("the car is gone", func() bool { return !s.plugged() })

	s.eventually("the profile is cleared", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.cleared > 0 })
	if n := s.sessions(); n != 1 {
		t.Errorf("%d sessions of one plug", n)
	}
}

func TestBridge_RebootReSends(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.say("Preparing")
	c.given()
	c.hangUp()
	c.boot()
	if p := c.given(); p.answer != "Accepted" {
		t.Errorf("after a reboot %+v", p)
	}

	s.obeys(c)
	s.callback(client.CallbackAccepted)
	if n := s.sessions(); n != 1 {
		t.Errorf("%d sessions of one plug", n)
	}
}

func TestBridge_RefusedTxProfileFallsBack(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.refuseTx = true
	c.boot()
	c.start(0)
	if p := c.given(); p.Profile.Purpose != "TxProfile" || p.answer != "Rejected" {
		t.Errorf("first %+v", p)
	}

	if p := c.given(); p.Profile.Purpose != "TxDefaultProfile" || p.Profile.Tx != 0 || p.answer != "Accepted" {
		t.Errorf("then %+v", p)
	}

	s.callback(client.CallbackExecuted)
	s.obeys(c)
	s.intent(20) // what it refused is not tried again
	if p := c.given(); p.Profile.Purpose != "TxDefaultProfile" {
		t.Errorf("the next schedule came as %+v", p)
	}
}

func TestBridge_WhatBecameOfIt(t *testing.T) {
	for name, x := range map[string]struct {
		nature func(*sim)
		want   client.CallbackStatus
		silent bool
		late   bool
	}{
		"refuses all": {func(c *sim) { c.refuseAll = true }, client.CallbackRejected, false, false},

		"accepts and does not obey": {func(c *sim) { c.ignore = true }, client.CallbackFailed, false, true},
		"cannot say":                {func(c *sim) { c.mute = true }, client.CallbackAccepted, false, false},
		"does not answer":           {func(c *sim) { c.quiet = true }, client.CallbackFailed, true, false},
		"obeys":                     {func(c *sim) {}, client.CallbackExecuted, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			timing := quick

			if x.silent {
				timing.Call = 200 * time.Millisecond
			}

			s := open(t, ocppserver.Settings{Timing: timing})
			c := newSim(t, s.url, "CP1", s.now)
			x.nature(c)
			c.boot()
			c.start(0)
			c.given()
			if x.late { // it is mended first, and has failed when that did not help
				s.tick(time.Minute + time.Second)
				c.say("Charging")

				s.eventually("it is cleared", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.cleared > 0 })
				c.given()
				s.tick(time.Minute + time.Second)
				c.say("Charging")
			}

			s.callback(x.want)
		})
	}
}

func TestBridge_OfflineCharger(t *testing.T) {
	s := open(t, ocppserver.Settings{Timing: bootless})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.say("Preparing")
	c.given()
	s.callback(client.CallbackAccepted)

	c.hangUp()
	s.intent(12)
	s.callback(client.CallbackReceived) // the bridge has it, the charger does not
	c.connect()                         // without a boot
	if p := c.given(); p.answer != "Accepted" {
		t.Errorf("after the connection came back %+v", p)
	}

	s.callback(client.CallbackAccepted)
}

func TestBridge_RestartForgetsNothing(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.say("Preparing")
	c.given()
	s.callback(client.CallbackAccepted)

	s.halt()
	s.bridge(ocppserver.Settings{Timing: bootless})
	c.url = s.url
	c.connect() // it is asked how its connector is, and flexd what schedule stands
	if p := c.given(); p.answer != "Accepted" {
		t.Errorf("from a new bridge %+v", p)
	}

	s.obeys(c)
	if n := s.sessions(); n != 1 {
		t.Errorf("%d sessions of one plug", n)
	}

	s.intent(45) // and the new bridge's secret is known
	c.given()
	s.callback(client.CallbackAccepted)
}

func TestBridge_DuplicateAndOutOfOrder(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.unasked = true // a newer register that is passed on first would keep the older one back
	c.boot()
	c.must("StatusNotification", c.statusBody("Available", s.now()))
	c.must("StopTransaction", `{"transactionId":-1,"meterStop":5,"timestamp":"2026-04-14T21:00:00Z"}`) // of no transaction
	at := s.now()
	tx := c.startAt(1000, at)
	if again := c.startAt(1000, at); again != tx {
		t.Errorf("a repeated StartTransaction was numbered %d, before %d", again, tx)
	}

	s.eventually("the car is there", s.plugged)
	c.must("StatusNotification", c.statusBody("Available", at.Add(-time.Minute))) // late: it was so before
	s.tick(time.Minute)
	c.given()
	s.intent(20) // its profile is sent after plugs were looked at
	c.given()
	if !s.plugged() {
		t.Error("a late status ended the session")
	}

	for range 2 {
		c.stop(tx, 1050, "EVDisconnected")
	}

	s.eventually("the car is gone", func() bool { return !s.plugged() })
	s.tick(3 * time.Hour)
	c.startAt(2000, evening.Add(2*time.Hour)) // waited in the charger while it was offline
	s.tick(time.Minute)                       // reports are due
	s.eventually("its meter is known, which is passed on after plugs", func() bool {
		return slices.Contains(s.readings(flex.ChargerRegister), 2)
	})

	if s.plugged() {
		t.Error("an old transaction plugged a car in")
	}
}

func TestBridge_FlickerIsOneSession(t *testing.T) {
	timing := quick
	timing.PlugOut = time.Hour // nothing but the clock of the story ends it
	s := open(t, ocppserver.Settings{Timing: timing})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	for range 5 {
		c.say("Preparing")
		s.eventually("the car is there", s.plugged)
		s.tick(3 * time.Second)
		c.say("Available")
		s.tick(3 * time.Second)
	}

	c.given()
	s.intent(20) // its profile is sent after plugs were looked at
	c.given()
	if !s.plugged() || s.sessions() != 1 {
		t.Errorf("a plug that flickered made %d sessions", s.sessions())
	}

	s.tick(2 * time.Hour)
	c.must("Heartbeat", `{}`)
	s.eventually("the car is gone", func() bool { return !s.plugged() })
}

// TestBridge_NextCarWhileOffline: a charger that was offline while one car left and another
// came says both at once, in either order with how it is now. The second car's charge is a
// session of its own; a plug that was free for a moment is not.
func TestBridge_NextCarWhileOffline(t *testing.T) {
	for _, x := range []struct {
		name     string
		free     time.Duration // between the two
		nowFirst bool          // its status is said before what waited
		sessions int
	}{
		{"what waited first", time.Hour, false, 2},
		{"how it is first", time.Hour, true, 2},
		{"at the edge", 30 * time.Second, false, 2},
		{"a moment", 29 * time.Second, false, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			timing := quick

			timing.PlugOut = 30 * time.Second
			timing.Late = 30 * time.Second // what waited is taken up together, however long a slow machine takes between two messages
			s := open(t, ocppserver.Settings{Timing: timing})
			c := newSim(t, s.url, "CP1", s.now)
			c.boot()
			began := s.now()
			tx := c.startAt(1000, began)
			s.eventually("the first car is there", s.plugged)

			s.tick(3 * time.Hour)
			left := began.Add(time.Hour)
			waited := func() {
				c.stopAt(tx, 2000, "EVDisconnected", left)
				c.startAt(2000, left.Add(x.free))
			}

			if x.nowFirst {
				c.say("Charging")
				waited()
			} else {
				waited()
				c.say("Charging")
			}

			s.tick(time.Minute) // what came late is taken for true
			c.must("Heartbeat", `{}`)
			if x.sessions > 1 {
				s.eventually("the first car is gone", func() bool { return !s.plugged() })
			}

			s.eventually("each car has a session", func() bool {
				s.tick(10 * time.Second) // flexd takes what is plugged in within a minute for the same car
				c.must("Heartbeat", `{}`)
				return s.sessions() == x.sessions && s.plugged()
			})
			s.intent(20) // its profile is sent after plugs were looked at
			c.given()
			if s.sessions() != x.sessions || !s.plugged() {
				t.Errorf("%d sessions, want %d; a car: %t", s.sessions(), x.sessions, s.plugged())
			}
		})
	}
}

func TestBridge_Readings(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	c.meter(10_000, evening)
	tx := c.start(10_000)
	for i := 1; i <= 6; i++ {
		at := evening.Add(time.Duration(i) * 15 * time.Minute)
		s.tick(at.Sub(s.now()))
		c.meter(10_000+i*1000, at)
	}

	c.stop(tx, 16_000, "EVDisconnected")
	s.eventually("three half-hours of 2 kWh are known", func() bool {
		return slices.Equal(s.readings(flex.ChargerEnergy), []float64{2, 2, 2})
	})
}

func TestBridge_Passwords(t *testing.T) {
	s := open(t, ocppserver.Settings{Password: "shared", Passwords: map[string]string{"CP2": "own"}})
	for _, x := range []struct {
		id, password string
		ok           bool
	}{
		{"CP1", "shared", true}, {"CP1", "", false}, {"CP1", "wrong", false}, {"CP2", "own", true}, {"CP2", "shared", false},
		{"no such name", "shared", false}, {strings.Repeat("x", 48), "shared", true}, {strings.Repeat("x", 49), "shared", false},
	} {
		c := newSim(t, s.url, x.id, s.now)
		c.password = x.password
		if err := c.dial(); (err == nil) != x.ok {
			t.Errorf("%s with %q: %v", x.id, x.password, err)
		}
	}
}

func TestBridge_StrangersPush(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	resp, err := http.Post(s.push+"/push/CP1", "application/json", strings.NewReader(`{}`))
	s.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unsigned push was answered %d", resp.StatusCode)
	}
}

// TestBridge_UntidyChargers: what a charger sends that is no OCPP is passed over or refused,
// and the connection goes on.
func TestBridge_UntidyChargers(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	for _, text := range []string{
		``, `{}`, `[]`, `null`, `[2]`, `[2,"x"]`, `[2,"x","Heartbeat"]`, `[2,"x",7,{}]`, `[2,"x","Heartbeat",7]`, `[2,"x","StatusNotification",[]]`,
		`[3,"no such call",{}]`, `[4,"no such call"]`, `[4,"x",1,2]`, `["2","x","Heartbeat",{}]`, `[9,"x",{}]`, `[3,"",null]`,
		`[2,"x","StatusNotification",{"connectorId":-1,"status":"Charging"}]`, `[2,"x","StatusNotification",{"connectorId":17,"status":"Charging"}]`,
		`[2,"x","MeterValues",{"connectorId":1,"meterValue":[{"timestamp":"?","sampledValue":[{"value":"1e999"}]}]}]`,
	} {
		s.must(c.conn.Write(t.Context(), websocket.MessageText, []byte(text)))
	}

	c.must("Heartbeat", `{}`)
	for _, action := range []string{"Authorize", "DataTransfer", "FirmwareStatusNotification", "DiagnosticsStatusNotification"} {
		c.must(action, `{}`)
	}

	if _, err := c.call("GetBaseReport", `{}`); err == nil || !strings.Contains(err.Error(), "NotImplemented") {
		t.Errorf("an operation that is not there: %v", err)
	}

	if s.plugged() {
		t.Error("a connector that is not there plugged a car in")
	}

	// Every id of now has the same length, whoever else calls meanwhile.
	const around = len(`[2,"CP1-100001","DataTransfer",{"data":""}]`)
	c.mu.Lock()
	c.last = 100_000
	c.mu.Unlock()

	c.must("DataTransfer", `{"data":"`+strings.Repeat("x", 1<<20-around)+`"}`)
	if _, err := c.call("DataTransfer", `{"data":"`+strings.Repeat("x", 1<<20)+`"}`); err == nil {
		t.Error("a message above the limit was answered")
	}
}

// TestBridge_LastConnectionWins: a charger that lost its connection without a word connects
// again before the old one is found dead.
func TestBridge_LastConnectionWins(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	old, c := newSim(t, s.url, "CP1", s.now), newSim(t, s.url, "CP1", s.now)
	old.boot()
	c.boot()
	c.say("Preparing")
	if p := c.given(); p.answer != "Accepted" {
		t.Errorf("the new connection was given %+v", p)
	}

	s.callback(client.CallbackAccepted)
	select {
	case <-old.gone:
	case <-time.After(patience):
		t.Error("the old connection was kept")
	}

	if len(old.set) != 0 {
		t.Error("the old connection was used")
	}
}

// TestBridge_Subprotocol: who offers no version that is served is not talked to.
func TestBridge_Subprotocol(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	conn, _, err := websocket.Dial(t.Context(), s.url+"/CP1", &websocket.DialOptions{
		Subprotocols: []string{"ocpp1.5"}, HTTPHeader: http.Header{"Authorization": {"Basic Q1AxOnNoYXJlZA=="}}})
	s.must(err)
	defer conn.CloseNow()
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusProtocolError {
		t.Errorf("another subprotocol: %v", err)
	}
}

// TestBridge_RefusedByFlexd: with a wrong password the bridge ends and says why; it does not
// go on guessing.
func TestBridge_RefusedByFlexd(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	s.halt()
	b := ocppserver.New(ocppserver.Settings{Client: client.New(s.flexd, "acme", "not the password"), EndpointURL: s.push, Timing: quick})
	if err := b.Serve(t.Context(), s.listen(), s.listen()); client.StatusOf(err) != http.StatusUnauthorized {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestBridge_StopAndSilence: a charger that says no more after a transaction has no car.
func TestBridge_StopAndSilence(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.boot()
	tx := c.start(0)
	s.eventually("the car is there", s.plugged)
	c.stop(tx, 500, "Local")

	s.tick(10 * time.Second) // the clock runs on, and a minute is too long
	c.given()
	s.intent(20) // its profile is sent after plugs were looked at
	c.given()
	if !s.plugged() {
		t.Error("some seconds of silence ended the session")
	}

	s.tick(time.Minute)
	c.must("Heartbeat", `{}`)
	s.eventually("the car is gone", func() bool { return !s.plugged() })
}

// TestBridge_FewPeriods: a charger that holds two periods is given the rest when the second
// begins, and does in all what was asked.
func TestBridge_FewPeriods(t *testing.T) {
	s := open(t, ocppserver.Settings{})
	c := newSim(t, s.url, "CP1", s.now)
	c.maxPeriods = 2
	c.boot()
	c.say("Preparing")
	if p := c.given(); len(p.Profile.Schedule.Periods) != 2 || p.answer != "Accepted" || c.allows(evening.Add(5*time.Hour)) != 7400 {
		t.Errorf("first %+v", p)
	}

	s.tick(91 * time.Minute)
	c.must("Heartbeat", `{}`)
	if p := c.given(); len(p.Profile.Schedule.Periods) != 2 || p.answer != "Accepted" || c.allows(evening.Add(8*time.Hour)) != 0 {
		t.Errorf("then %+v", p)
	}
}
