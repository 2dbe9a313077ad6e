package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/operations"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// troubles is a flexd in which one thing of each kind can be wrong.
type troubles struct {
	*testing.T
	*storetest.Seed
	database string
	now      time.Time
	event    uint32            // the newest event's number
	file     string            // of keys
	name     string            // of the credential, once there is one
	kinds    []operations.Kind // that are to be found
}

// serve opens the store as the flexd that serves does.
func (s *troubles) serve() *app.App {
	s.Helper()
	h, err := app.Open(s.Context(), app.Settings{
		Database: s.database, Keys: s.keys(), Environment: flex.Sandbox, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		PrivateEndpoints: egress.Reach{Prefixes: egress.Private},
	})
	if err != nil {
		s.Fatal(err)
	}
	return h
}

// keys are those of a file that commands read too.
func (s *troubles) keys() *keyring.Ring {
	s.Helper()
	if s.file == "" {
		s.file = filepath.Join(s.TempDir(), "keys")
		if err := (&keyNew{File: s.file}).Run(s.Context(), console{out: io.Discard}); err != nil {
			s.Fatal(err)
		}
	}

	ring, err := (store{Database: s.database, KeyFile: s.file}).keys()
	if err != nil {
		s.Fatal(err)
	}
	return ring
}

// car plugs a car in that has no schedule.
func (s *troubles) car() flex.AssetID {
	s.Helper()
	site := s.Site(flex.FullScheduleMethod)
	asset := s.Asset(site, flex.Charger, 7000)
	s.event++
	session := flex.MakeID[struct{}](s.now, [10]byte{1, byte(s.event)})
	s.Exec(`INSERT INTO session (asset_id, number, id, org_id, site_id, plugged_in_at, generation) VALUES ($1, 1, $2, $3, $4, $5, 0)`,
		asset.Bytes(), session[:], s.Org.Bytes(), site.Bytes(), s.now.Add(-time.Hour).UnixMicro())
	return asset
}

// plan gives the car a schedule of 7 kW for a time from now on. The schedule is to bring a
// number of Wh by a time from now, of which off-peak time permits what offPeak says. It
// returns the event.
func (s *troubles) plan(asset flex.AssetID, draws time.Duration, need int64, ready time.Duration, offPeak string) []byte {
	s.Helper()
	s.event++
	id := flex.MakeID[struct{}](s.now, [10]byte{2, byte(s.event)})
	steps := fmt.Sprintf("%dx7000", int(draws.Seconds()))
	s.Exec(`INSERT INTO schedule (event_id, org_id, asset_id, session_id, generation, cause, made_at, from_at, to_at, steps, ready_by, need_wh, delivered_wh,
			count_from, power_w, running, may_charge_peak, mode, off_peak, zone, tariff_type, origins, value)
		SELECT $1, org_id, asset_id, id, 1, 'plug_in', $2, $2, $3, $4, $5, $6, 0, $2, 7000, TRUE, FALSE, 'MINIMISE', $7, 'Europe/London', 'DUAL_RATE', '', 0
		FROM session WHERE asset_id = $8`,
		id[:], s.now.UnixMicro(), s.now.Add(draws).UnixMicro(), steps, s.now.Add(ready).UnixMicro(), need, offPeak, asset.Bytes())
	s.Exec(`UPDATE session SET event_id = $2, generation = 1, ready_by = $3 WHERE asset_id = $1`, asset.Bytes(), id[:], s.now.Add(ready).UnixMicro())
	return id[:]
}

// push puts a car's schedule into the outbox. With a turn it has waited for 10 minutes;
// without one it was refused for good.
func (s *troubles) push(asset flex.AssetID, event []byte, turn any) {
	s.Helper()
	ago := s.now.Add(-10 * time.Minute).UnixMicro()
	s.Exec(`INSERT INTO outbox (subject, org_id, endpoint, kind, asset_id, event_id, generation, queued_at, expires_at, turn_at, waiting_since)
		VALUES ($1, $2, 'schedule', 'schedule', $1, $3, 1, $4, $5, $6, $4)`, asset.Bytes(), s.Org.Bytes(), event, ago, s.now.Add(9*time.Hour).UnixMicro(), turn)
}

// plant makes one thing of each kind go wrong, of those that a store can show.
func (s *troubles) plant(h *app.App) {
	s.Helper()
	const kWh, always = 1000, "00:00-24:00"
	ctx := s.Context()
	check := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}

	check(h.Push.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"}))
	s.car() // unplanned

	refused := s.car()
	s.push(refused, s.plan(refused, time.Hour, 5*kWh, 8*time.Hour, always), nil)
	waiting := s.car()
	s.push(waiting, s.plan(waiting, time.Hour, 5*kWh, 8*time.Hour, always), s.now.Add(time.Hour).UnixMicro())

	young := s.car() // waits, and not for long
	s.push(young, s.plan(young, time.Hour, 5*kWh, 8*time.Hour, always), s.now.Add(time.Hour).UnixMicro())
	s.Exec(`UPDATE outbox SET waiting_since = $2 WHERE asset_id = $1`, young.Bytes(), s.now.UnixMicro())

	from := s.now.In(flex.London)
	hour := from.Format("15:04") + "-" + from.Add(time.Hour).Format("15:04")
	s.plan(s.car(), time.Hour, 70*kWh, 2*time.Hour, always)      // no time, even at full power
	s.plan(s.car(), 30*time.Minute, 20*kWh, 8*time.Hour, hour)   // one hour is off-peak
	s.plan(s.car(), 30*time.Minute, 20*kWh, 8*time.Hour, always) // a limit beside it

	cut := s.plan(s.car(), time.Hour, 5*kWh, 8*time.Hour, always)
	s.Exec(`UPDATE schedule SET origins = 'event asset site home too_large cut_short' WHERE event_id = $1`, cut)
	safe := s.plan(s.car(), time.Hour, 5*kWh, 8*time.Hour, always)
	s.Exec(`UPDATE schedule SET origins = 'event asset site plan_refused' WHERE event_id = $1`, safe)

	for range 2 { // nothing is plugged in at them
		excluded := s.Asset(s.Site(flex.FullScheduleMethod), flex.Charger, 7000)
		s.Exec(`UPDATE asset SET excluded_at = $2 WHERE id = $1`, excluded.Bytes(), s.now.Add(-time.Hour).UnixMicro())
	}

	battery := s.Asset(s.Site(flex.FullScheduleMethod), flex.Battery, 5000)
	s.Exec(`INSERT INTO battery_plan (asset_id, org_id, from_at, modes, planned_at, changed_at, stored_at, stored_wh, guess_at, guess, seen_at, refused)
		VALUES ($1, $2, $3, '', $3, $3, $3, 0, $3, '', $3, TRUE)`, battery.Bytes(), s.Org.Bytes(), flex.PeriodAt(s.now).Start().UnixMicro())

	for _, lack := range []int{99, 100} { // the first lacks too little to be named
		tank := s.Asset(s.Site(flex.FullScheduleMethod), flex.HotWaterTank, 3000)
		from := flex.PeriodAt(s.now).Start().UnixMicro()
		s.Exec(`INSERT INTO tank_plan (asset_id, org_id, site_id, event_id, generation, made_at, power_w, from_at, to_at, steps, may_from_at, may, freed,
				planned_at, seen_at, stored_at, stored_wh, basis, lack_wh, lack_at)
			SELECT id, org_id, site_id, id, 1, $2, 3000, $2, $3, '3600x3000', $2, '3600x3000', FALSE, $3, $3, $2, 0, 'assumed', $4, $3 FROM asset WHERE id = $1`,
			tank.Bytes(), from, from+3_600_000_000, lack)
	}

	for _, lack := range []int{499, 500} {
		pump := s.Asset(s.Site(flex.FullScheduleMethod), flex.HeatPump, 3000)
		from := flex.PeriodAt(s.now).Start().UnixMicro()
		s.Exec(`INSERT INTO tank_plan (asset_id, org_id, site_id, event_id, generation, made_at, power_w, from_at, to_at, steps, may_from_at, may, freed,
				planned_at, seen_at, stored_at, stored_wh, basis, lack_wh, lack_mk, lack_at)
			SELECT id, org_id, site_id, id, 1, $2, 3000, $2, $3, '3600x3000', $2, '3600x3000', FALSE, $3, $3, $2, 0, 'assumed', 0, $4, $3 FROM asset WHERE id = $1`,
			pump.Bytes(), from, from+3_600_000_000, lack)
	}

	// Its schedules have nowhere to go, and its dispatch events an endpoint that is off.
	_, _, err := h.Push.SetEndpoint(ctx, s.Org, flex.DispatchEndpoint, delivery.Settings{URL: "http://127.0.0.1:9/"})
	check(err)
	s.Exec(`UPDATE endpoint SET enabled = FALSE, reason = 'it answered 410'`)

	yesterday := flex.PeriodAt(s.now.Add(-24 * time.Hour))
	check(h.Publish(ctx, "market-index", s.now.Add(-26*time.Hour), []flex.PricedPeriod{{Period: yesterday, Price: 50_000_000, Known: true}}))

	ago := s.now.Add(-48 * time.Hour).UnixMicro()
	s.Exec(`INSERT INTO held_reading (id, org_id, asset_id, label, from_at, to_at, value, reason, detail, held_at)
		VALUES ($1, $2, $1, 1, $3, $4, 1, 'power', 'too much', $3)`, refused.Bytes(), s.Org.Bytes(), ago, ago+1800_000_000)
	s.withdraw(ago)
	s.unsent(waiting)
	s.notReleased(waiting)
	s.dispatchRefused(battery)
	s.Exec(`INSERT INTO cap_link (org_id, group_name, fallback_w, silence_s, heard_at, lost_at) VALUES ($1, 'feeder 7', 20000, 60, $2, $2)`, s.Org.Bytes(), ago)
	s.Exec(`INSERT INTO cap_limit (id, org_id, group_name, from_at, to_at, limit_w, source, made_at, over_from_at, over_to_at, over_w)
		VALUES ($1, $2, 'feeder 7', $3, $4, 4000, 'import', $3, $3, $4, 2000)`, waiting.Bytes(), s.Org.Bytes(), ago, s.now.UnixMicro())

	s.instructNobody(flex.PeriodAt(s.now).Start(), waiting)
	s.unanswered(waiting, 2*time.Hour)
	s.silence(refused, waiting, battery)
	check(h.ADR.AddUpstream(ctx, s.Org, &records.ADRUpstream{
		Name: "utility", URL: "http://127.0.0.1:9/vtn", Client: "x", Secret: "y", Remote: "limits", Poll: 30 * time.Second, Silence: time.Minute}))
	s.Exec(`UPDATE adr_upstream SET due_at = $2, heard_at = $1, error = 'no answer'`, ago, s.now.Add(time.Hour).UnixMicro())
	s.Exec(`INSERT INTO adr_order (id, org_id, program_id, event_id, interval_id, from_at, to_at, change_w, state, problem, made_at)
		VALUES ($1, $2, $1, $1, 0, $3, $4, 0, 'refused', 'it has no end', $3)`, waiting.Bytes(), s.Org.Bytes(), ago, s.now.UnixMicro())
}

// unsent makes a queued job fail for good, adds another that failed too long ago to be listed,
// and makes an alert fire for which there is no route.
func (s *troubles) unsent(asset flex.AssetID) {
	s.Helper()
	now := s.now.UnixMicro()
	for n, failed := range []int64{now, now - operations.FailedFor.Microseconds()} {
		s.Exec(`INSERT INTO job (kind, org_id, subject, lease, queued_at, failed_at, error) VALUES ('cloud token', $1, $2, 1, $3, $4, 'it answered 400')`,
			s.Org.Bytes(), append([]byte{byte(n)}, asset.Bytes()...), failed-1, failed)
	}

	s.Exec(`INSERT INTO alert (id, kind, org_id, level, count, title, text, since_at, latest_at, fired_at, round, acknowledged_by, note)
		VALUES ($1, 'offline', $2, 'critical', 1, 'a charger is offline', '', $3, $3, $3, 1, '', '')`, asset.Bytes(), s.Org.Bytes(), now)
}

// notReleased has an asset still follow a dispatch that ended an hour ago.
func (s *troubles) notReleased(asset flex.AssetID) {
	s.Helper()
	ago := s.now.Add(-time.Hour).UnixMicro()
	s.Exec(`INSERT INTO dispatch (event_id, org_id, market, issued_at, from_at, to_at, batch) VALUES ($1, $2, 'dfs', $3, $4, $5, FALSE)`,
		asset.Bytes(), s.Org.Bytes(), ago-2, ago-1, ago)
	s.Exec(`INSERT INTO dispatch_asset (event_id, asset_id, org_id, power_w, release, release_tries) VALUES ($1, $1, $2, 2000, 'missing', 2)`,
		asset.Bytes(), s.Org.Bytes())
}

// dispatchRefused adds a dispatch of an asset with an hour to go, which the client refused.
// The event has the asset's id.
func (s *troubles) dispatchRefused(asset flex.AssetID) {
	s.Helper()
	now, hour := s.now.UnixMicro(), time.Hour.Microseconds()
	s.Exec(`INSERT INTO dispatch (event_id, org_id, market, issued_at, from_at, to_at, batch) VALUES ($1, $2, 'dfs', $3, $4, $5, FALSE)`,
		asset.Bytes(), s.Org.Bytes(), now-hour, now-hour, now+hour)
	s.Exec(`INSERT INTO dispatch_asset (event_id, asset_id, org_id, power_w) VALUES ($1, $1, $2, -2000)`, asset.Bytes(), s.Org.Bytes())
	s.Exec(`INSERT INTO outbox (subject, org_id, endpoint, kind, event_id, generation, queued_at, expires_at, waiting_since)
		VALUES ($1, $2, 'dispatch', 'dispatch', $1, 1, $3, $4, $3)`, asset.Bytes(), s.Org.Bytes(), now-hour, now+hour)
}

// silence makes one asset's charger unreachable for its client, stops the readings of another,
// and leaves a battery with only its state of charge.
func (s *troubles) silence(offline, missing, battery flex.AssetID) {
	s.Helper()
	s.Exec(`INSERT INTO unreached (asset_id, org_id, event_id, since_at) VALUES ($1, $2, $1, $3)`, offline.Bytes(), s.Org.Bytes(), s.now.Add(-time.Hour).UnixMicro())
	s.Exec(`INSERT INTO reading_due (asset_id, steady, org_id, at, due_at) VALUES ($1, TRUE, $2, $3, $4)`,
		missing.Bytes(), s.Org.Bytes(), s.now.Add(-49*time.Hour).UnixMicro(), s.now.Add(-time.Hour).UnixMicro())
	s.Exec(`INSERT INTO reading_due (asset_id, steady, org_id, at, due_at, charge_at) VALUES ($1, TRUE, $2, $3, $4, $5)`,
		battery.Bytes(), s.Org.Bytes(), s.now.Add(-time.Hour).UnixMicro(), s.now.Add(23*time.Hour).UnixMicro(), s.now.Add(-30*time.Hour).UnixMicro())
}

// withdraw has a withdrawal wait for approval since an instant.
func (s *troubles) withdraw(at int64) {
	s.Helper()
	site := s.Site()
	s.Exec(`INSERT INTO ledger (id, org_id, site_id, key, kind, credit, recorded_at) VALUES ($1, $2, $1, 'w', 'withdrawal', -1000, $3)`,
		site.Bytes(), s.Org.Bytes(), at)
	s.Exec(`INSERT INTO withdrawal (id, org_id, site_id, amount, status, moves, attempt, asked_at, changed_at)
		VALUES ($1, $2, $1, 1000, 'pending_approval', 1, 1, $3, $3)`, site.Bytes(), s.Org.Bytes(), at)
	s.Exec(`INSERT INTO withdrawal_move (withdrawal_id, number, org_id, status, decided_by, at) VALUES ($1, 1, $2, 'pending_approval', 'user', $3)`,
		site.Bytes(), s.Org.Bytes(), at)
}

// failingJob is a background job whose latest run failed.
func (s *troubles) failingJob() *worker.Worker {
	ctx, end := context.WithCancel(s.Context())
	w := &worker.Worker{Name: "prices", Every: time.Hour, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Job: func(context.Context) (worker.Report, error) {
		end()
		return worker.Report{}, errors.New("no answer")
	}}
	w.Run(ctx)
	return w
}

// browse returns functions that request a path: as an operator of the console, and as a
// program of the organisation.
func (s *troubles) browse(h *app.App) (page, program func(path string) string) {
	s.Helper()
	ctx := s.Context()
	fail := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}

	if s.name == "" {
		s.name = "reader"
		_, err := h.Access.AddOperator(ctx, "ada", "correct horse battery", access.Admin)
		fail(err)
		_, err = h.Access.AddCredential(ctx, s.Org, s.name, "a password of some length", flex.Roles, records.CredentialLimits{})
		fail(err)
	}

	token, err := h.Access.Login(ctx, s.name, "a password of some length", "test")
	fail(err)
	handler := h.Handler()
	form := url.Values{"name": {"ada"}, "password": {"correct horse battery"}}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost:8080/console/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	cookie, err := http.ParseSetCookie(w.Header().Get("Set-Cookie"))
	fail(err)

	get := func(path string, by func(r *http.Request)) string {
		s.Helper()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:8080"+path, nil)
		r.RemoteAddr = "127.0.0.1:4000"
		by(r)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			s.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.String()
	}

	page = func(path string) string {
		s.Helper()
		return get(path, func(r *http.Request) { r.AddCookie(cookie) })
	}
	program = func(path string) string {
		s.Helper()
		return get(path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token.Token.Reveal()) })
	}

	return page, program
}

const nothing = `<p class="notice good">Nothing needs looking at`

// TestExceptions_EveryPlace makes one thing of each kind go wrong, and finds each in every
// place where an operator or a program may look. Before that, the page says that nothing is
// wrong.
func TestExceptions_EveryPlace(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second), kinds: operations.Kinds}
		h := s.serve()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		s.Asset(s.Site(), flex.Charger, 7000)

		page, program := s.browse(h)
		if text := page("/console/fleet"); !strings.Contains(text, nothing) {
			t.Errorf("nothing is wrong, and the page says %s", text)
		}
		if text := strings.TrimSpace(program("/operations/exceptions")); text != `{"exceptions":[]}` {
			t.Errorf("nothing is wrong, and a program reads %s", text)
		}
		s.plant(h)
		if err := h.Close(); err != nil { // its picture of the fleet was made before
			t.Fatal(err)
		}

		h = s.serve()
		defer h.Close()
		h.Operations.Jobs = func() []*worker.Worker { return []*worker.Worker{s.failingJob()} }
		h.Operations.Trouble = func() *records.Trouble {
			return &records.Trouble{What: "its disk is full", Since: s.now, At: s.now}
		}

		page, program = s.browse(h)
		s.inConsole(page)
		s.inLists(page)
		s.inInterface(program("/operations/exceptions"))
		s.inMetrics(program("/metrics"))
		s.inAlerts(h)
		s.inDoctor()
	})
}

// TestExceptions_Reported: a client accepts two schedules, and reports afterwards that they
// were rejected and failed. Every place says so, until one is reported as executed.
func TestExceptions_Reported(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		s.kinds = []operations.Kind{operations.Refused, operations.EndpointMissing}
		h := s.serve()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		rejected, failed := s.car(), s.car()
		rejection, failure := s.accepted(rejected), s.accepted(failed)
		s.accepted(s.car()) // nothing is reported of it
		s.report(rejected, rejection, flex.Rejected)
		s.report(failed, failure, flex.Failed)

		if err := h.Close(); err != nil { // its picture of the fleet was made before
			t.Fatal(err)
		}
		h = s.serve()
		defer h.Close()
		page, program := s.browse(h)
		s.inConsole(page)
		s.inInterface(program("/operations/exceptions"))
		s.inMetrics(program("/metrics"))
		s.inAlerts(h)
		s.inDoctor()

		const title = " whose schedule the client reported as rejected or failed"
		if text := program("/operations/exceptions"); !strings.Contains(text, "2 assets"+title) || strings.Contains(text, "It answered") {
			t.Errorf("a program reads %s", text)
		}

		s.report(failed, failure, flex.Executed)
		if text := program("/operations/exceptions"); !strings.Contains(text, "1 asset"+title) {
			t.Errorf("one was executed, and a program reads %s", text)
		}
		text := page("/console/assets.json?state=refused")
		if !strings.Contains(text, rejected.String()) || strings.Contains(text, failed.String()) {
			t.Errorf("the list has %s", text)
		}
	})
}

// TestExceptions_NotExported: a withdrawal is approved and in no payment file, and then in one
// without a result. Each is listed when it has waited for too long.
func TestExceptions_NotExported(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		asked := s.now.Add(-30 * 24 * time.Hour).UnixMicro()
		s.withdraw(asked)
		s.Exec(`INSERT INTO withdrawal_move (withdrawal_id, number, org_id, status, decided_by, at)
			SELECT id, 2, org_id, 'approved', 'ada', $1 FROM withdrawal`, asked)

		_, program := s.browse(h)
		approved := func(ago time.Duration) string {
			s.Exec(`UPDATE withdrawal SET status = 'approved', moves = 2, changed_at = $1`, s.now.Add(-ago).UnixMicro())
			return program("/operations/exceptions")
		}

		if text := approved(operations.ExportLate - time.Hour); strings.Contains(text, "payout_waiting") {
			t.Errorf("too early a program reads %s", text)
		}
		if text := approved(operations.ExportLate); !strings.Contains(text, "1 withdrawal approved and in no payment file") {
			t.Errorf("a program reads %s", text)
		}

		s.Exec(`INSERT INTO withdrawal_move (withdrawal_id, number, org_id, status, decided_by, at)
			SELECT id, 3, org_id, 'processing', 'ada', $1 FROM withdrawal`, asked)
		exported := func(ago time.Duration) string {
			s.Exec(`UPDATE withdrawal SET status = 'processing', moves = 3, changed_at = $1`, s.now.Add(-ago).UnixMicro())
			return program("/operations/exceptions")
		}

		if text := exported(operations.ResultLate - time.Hour); strings.Contains(text, "payout_waiting") {
			t.Errorf("too early a program reads %s", text)
		}
		if text := exported(operations.ResultLate); !strings.Contains(text, "1 withdrawal in a payment file and without a result") {
			t.Errorf("a program reads %s", text)
		}
	})
}

// TestExceptions_HeaterRefused: a client refuses the plan of a hot-water tank. The tank is
// listed as not controlled, although nothing is plugged in.
func TestExceptions_HeaterRefused(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		tank := s.Asset(s.Site(flex.FullScheduleMethod), flex.HotWaterTank, 3000)
		from := flex.PeriodAt(s.now).Start().UnixMicro()
		s.Exec(`INSERT INTO tank_plan (asset_id, org_id, site_id, event_id, generation, made_at, power_w, from_at, to_at, steps, may_from_at, may, freed,
				planned_at, seen_at, stored_at, stored_wh, basis, lack_wh)
			SELECT id, org_id, site_id, id, 1, $2, 3000, $2, $3, '7200x3000', $2, '7200x3000', FALSE, $2, $2, $2, 0, 'assumed', 0 FROM asset WHERE id = $1`,
			tank.Bytes(), from, from+7_200_000_000)
		s.push(tank, tank.Bytes(), nil)
		s.finds(h, operations.Refused, "1 asset whose schedule the client refused", "not controlled")

		s.Exec(`UPDATE outbox SET accepted = generation WHERE asset_id = $1`, tank.Bytes())
		s.report(tank, tank.Bytes(), flex.Failed)
		s.finds(h, operations.Refused, "reported as rejected or failed", "not EXECUTED since")
	})
}

// TestExceptions_DispatchRefused: a client refuses the dispatch of one of two batteries, or
// accepts it and reports that it failed. That battery is listed as not following its plan,
// until the dispatch is executed or its time is over.
func TestExceptions_DispatchRefused(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		battery := s.Asset(s.Site(flex.FullScheduleMethod), flex.Battery, 5000)
		s.dispatchRefused(battery)
		other := s.Asset(s.Site(flex.FullScheduleMethod), flex.Battery, 5000)
		s.dispatchRefused(other)
		s.Exec(`UPDATE outbox SET accepted = generation WHERE event_id = $1`, other.Bytes())
		s.finds(h, operations.DispatchRefused, "1 asset whose dispatch the client refused", "Mend the client's endpoint for dispatches")

		s.Exec(`UPDATE outbox SET accepted = generation`)
		s.report(battery, battery.Bytes(), flex.Failed)
		s.finds(h, operations.DispatchRefused, "1 asset whose dispatch the client reported as rejected or failed", "not EXECUTED since")

		none := func(when string) {
			t.Helper()
			found, _, err := h.Operations.Exceptions(t.Context(), s.Org)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range found {
				if e.Kind == operations.DispatchRefused {
					t.Errorf("%s: %+v", when, e)
				}
			}
		}

		s.report(battery, battery.Bytes(), flex.Executed)
		none("executed")
		s.Exec(`UPDATE outbox SET accepted = 0`)
		s.Exec(`UPDATE dispatch SET to_at = $1`, s.now.UnixMicro())
		none("over")
	})
}

// TestExceptions_NoDispatchEndpoint: a dispatch waits for an endpoint that was never set,
// which is no fault of the client. Another waits for an endpoint that gave no answer, and the
// exception shows its error.
func TestExceptions_NoDispatchEndpoint(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		battery := s.Asset(s.Site(flex.FullScheduleMethod), flex.Battery, 5000)
		ago := s.now.Add(-10 * time.Minute).UnixMicro()
		s.Exec(`INSERT INTO outbox (subject, org_id, endpoint, kind, event_id, generation, queued_at, expires_at, turn_at, waiting_since)
			VALUES ($1, $2, 'dispatch', 'dispatch', $1, 1, $3, $4, $3, $3)`, battery.Bytes(), s.Org.Bytes(), ago, s.now.Add(time.Hour).UnixMicro())

		s.finds(h, operations.EndpointMissing, "has no endpoint for dispatches", "flexd endpoint set --dispatch")
		page, _ := s.browse(h)
		if text := page("/console/deliveries.json?late=yes"); strings.Contains(text, battery.String()) {
			t.Errorf("the late deliveries have %s", text)
		}

		_, _, err := h.Push.SetEndpoint(t.Context(), s.Org, flex.DispatchEndpoint, delivery.Settings{URL: "http://127.0.0.1:9/"})
		if err != nil {
			t.Fatal(err)
		}
		s.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
			VALUES ($1, $2, 'dispatch', 'dispatch', 1, $3, 'pending', 1, $3, 0, 0, 'connection refused', '')`, s.Org.Bytes(), battery.Bytes(), ago)
		s.finds(h, operations.Waiting, "1 push waiting", `The last error: "connection refused".`)
	})
}

// finds wants one exception, of a kind, whose title and text have these words.
func (s *troubles) finds(h *app.App, kind operations.Kind, title, text string) {
	s.Helper()
	found, _, err := h.Operations.Exceptions(s.Context(), flex.OrgID{})
	if err != nil {
		s.Fatal(err)
	}
	if len(found) != 1 {
		s.Fatalf("exceptions: %v", found)
	}

	e := found[0]
	if e.Kind != kind || e.Count != 1 || !strings.Contains(e.Title, title) || !strings.Contains(e.Text, text) {
		s.Errorf("found %v", e)
	}
}

// accepted gives a car a schedule that its client accepted. It returns the event.
func (s *troubles) accepted(asset flex.AssetID) []byte {
	s.Helper()
	event := s.plan(asset, time.Hour, 5000, 8*time.Hour, "00:00-24:00")
	s.push(asset, event, nil)
	s.Exec(`UPDATE outbox SET accepted = generation WHERE asset_id = $1`, asset.Bytes())

	return event
}

// report stores a callback of a client.
func (s *troubles) report(asset flex.AssetID, event []byte, status flex.CallbackStatus) {
	s.Helper()
	s.Exec(`INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) VALUES ($1, $2, $3, $4, $5, $5)`,
		s.Org.Bytes(), event, asset.Bytes(), string(status), s.now.UnixMicro())
}

func (s *troubles) inConsole(page func(path string) string) {
	s.Helper()
	text := page("/console/fleet")
	for _, kind := range s.kinds {
		if !strings.Contains(text, `data-kind="`+string(kind)+`"`) {
			s.Errorf("%s is not on the fleet's page", kind)
		}
	}
	if strings.Contains(text, nothing) {
		s.Error("the page says that nothing is wrong")
	}
}

// inLists follows the link of each exception on the fleet's page. The page exists, and a list
// of things of one kind has as many as the exception counts, whatever else there is.
func (s *troubles) inLists(page func(path string) string) {
	s.Helper()
	var fleet struct {
		Exceptions []struct {
			Kind, Title, Text, See string
			Count                  int
		}
	}
	if err := json.Unmarshal([]byte(page("/console/fleet.json")), &fleet); err != nil {
		s.Fatal(err)
	}

	counted := 0
	for _, e := range fleet.Exceptions {
		if e.See == "" {
			s.Errorf("%s: no page shows it", e.Kind)
			continue
		}
		page(e.See)

		list := strings.HasPrefix(e.See, "/console/assets?") || strings.Contains(e.See, "late=") || strings.HasSuffix(e.See, "/held")
		if !list {
			continue
		}

		counted++
		path, query, _ := strings.Cut(e.See, "?")
		text := page(path + ".json?limit=1000&" + query)
		var rows []any
		if err := json.Unmarshal([]byte(text), &rows); err != nil {
			s.Fatalf("%s: %v in %s", e.See, err, text)
		}
		if len(rows) != e.Count {
			s.Errorf("%s: %q, and %s lists %d", e.Kind, e.Title, e.See, len(rows))
		}
	}

	if counted < 15 {
		s.Errorf("%d exceptions lead to a list", counted)
	}
}

func (s *troubles) inInterface(text string) {
	s.Helper()
	var got struct{ Exceptions []struct{ Kind string } }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		s.Fatal(err)
	}

	var kinds []operations.Kind
	for _, e := range got.Exceptions {
		kinds = append(kinds, operations.Kind(e.Kind))
	}
	if !slices.Equal(kinds, s.kinds) {
		s.Errorf("a program reads %v, of %v", kinds, s.kinds)
	}
}

func (s *troubles) inMetrics(text string) {
	s.Helper()
	for _, kind := range s.kinds {
		series := fmt.Sprintf("flexd_exceptions{kind=%q} ", kind)
		_, after, found := strings.Cut(text, series)
		if !found || strings.HasPrefix(after, "0\n") {
			s.Errorf("%s is not in the metrics", kind)
		}
	}
}

// inAlerts makes every rule fire at once, and reads what a route is sent. Without the route,
// which it removes at the end, there are alerts that are sent to nobody; with it there are
// none.
func (s *troubles) inAlerts(h *app.App) {
	s.Helper()
	var mu sync.Mutex
	var all strings.Builder
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.Copy(&all, r.Body); err != nil {
			s.Error(err)
		}
	}))
	defer server.Close()

	route := records.AlertRoute{Name: "night", Kind: operations.RouteWebhook, Target: server.URL, Level: string(operations.Warning)}
	if err := h.Operations.AddRoute(s.Context(), &route); err != nil {
		s.Fatal(err)
	}
	for _, kind := range s.kinds {
		if err := h.Operations.SetAlertRule(s.Context(), operations.AlertRule{Kind: kind, Enabled: true, Threshold: 1}); err != nil {
			s.Fatal(err)
		}
	}

	for _, job := range []worker.Job{h.Operations.WatchAlerts, h.Operations.SendAlerts} {
		for more := true; more; {
			r, err := job(s.Context())
			if err != nil {
				s.Fatal(err)
			}
			more = r.More
		}
	}

	mu.Lock()
	defer mu.Unlock()
	for _, kind := range s.kinds {
		want := 1
		if kind == operations.AlertUnrouted {
			want = 0
		}

		if n := strings.Count(all.String(), fmt.Sprintf(`"kind":%q`, kind)); n != want {
			s.Errorf("%s: %d alerts", kind, n)
		}
	}

	if err := h.Operations.DropRoute(s.Context(), route.Name); err != nil {
		s.Fatal(err)
	}
}

// inDoctor asks flexd doctor, which is another process.
func (s *troubles) inDoctor() {
	s.Helper()
	run := commandLineOf(s.T, s.database)
	s.Setenv("FLEXD_KEY_FILE", s.file)
	code, said := run("doctor --json")
	if code != exitFailed {
		s.Errorf("flexd doctor ends with %d", code)
	}

	for _, kind := range s.kinds {
		if !strings.Contains(said, fmt.Sprintf("%q: %q", "part", kind)) {
			s.Errorf("%s is not with the doctor: %s", kind, said)
		}
	}
}
