package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
	"flexd/sim"
)

// pipes is a listener whose connections are made in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// player plays one story on a flexd in a bubble.
type player struct {
	*testing.T
	app      *app.App
	client   *client.Client
	org      flex.OrgID
	endpoint *sim.Endpoint
	down     atomic.Bool
	chargers map[string]*sim.Charger
	assets   map[string]client.AssetID
	sites    map[string]client.SiteID
	hearing  sync.Mutex     // for pushes that come at once
	heard    map[string]int // pushes that came, by charger
	known    map[string]int // of which the story knows
	drawn    map[string]map[flex.Period]float64
	draws    map[string]flex.Watts // what a car takes, where it is less than its charger gives
	paused   *flex.Span

	openADR    dispatcher
	invited    invited
	instructed wire.InstructionPreview // the last one that was sent

	now  time.Time
	step time.Duration // between looks; as until chooses if zero
	line sim.Line

	spare     map[string]client.AssetID // by site, the charger that came with it
	batteries batteries
}

// stepLength is how often a story looks after a line: the background jobs run, chargers draw,
// half-hours that have ended are reported.
const stepLength = 5 * time.Minute

// play plays a story to its end and verifies the store.
func play(t *testing.T, lines []sim.Line) { playWith(t, lines, func(*player) {}) }

// playWith is play with more to do after the lines.
func playWith(t *testing.T, lines []sim.Line, more func(*player)) {
	time.Sleep(time.Until(lines[0].At)) // the bubble begins on 1 January 2000
	listener, post := newPipes(), newPipes()
	p := &player{T: t, chargers: map[string]*sim.Charger{}, assets: map[string]client.AssetID{}, sites: map[string]client.SiteID{},
		heard: map[string]int{}, known: map[string]int{}, drawn: map[string]map[flex.Period]float64{}, draws: map[string]flex.Watts{}, now: lines[0].At, spare: map[string]client.AssetID{},
		batteries: batteries{last: map[string]client.EventID{}, changed: map[string]time.Time{}}}
	h, err := app.Open(t.Context(), app.Settings{Database: storetest.SQLite(t), Keys: storetest.Keys(t), Environment: flex.Sandbox, AllowPrivateEndpoints: true,
		Pipe: post.dial, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}

	p.app = h
	h.Push.Jitter = func([16]byte, int) float64 { return 0.5 } // when a retry comes is what a car has drawn meanwhile
	server, receiver := &http.Server{Handler: h.Handler()}, &http.Server{Handler: http.HandlerFunc(p.receive)}
	go server.Serve(listener)
	go receiver.Serve(post)
	org, password, err := h.Access.AddOrg(t.Context(), "Fleet", "fleet", "")
	p.must(err)
	p.org, p.client = org.ID, client.New("http://flexd", "fleet", password.Reveal())

	transport := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return listener.dial(ctx, addr) }}
	p.client.HTTP.Transport = transport
	defer func() { // however the story ends: nothing may go on in the bubble
		transport.CloseIdleConnections()
		server.Close()
		receiver.Close()
		h.Push.Close()
		storetest.Close(t, h.DB)
	}()

	made, err := p.client.SetEndpoint(t.Context(), client.EndpointRequest{URL: "http://post/{external_id}"})
	p.must(err)
	p.endpoint = sim.NewEndpoint(made.Secret)
	p.endpoint.Received = func(h sim.Received) {
		p.hearing.Lock()
		defer p.hearing.Unlock()
		p.heard[h.Charger.ExternalID]++
	}

	for _, p.line = range lines {
		p.until(p.line.At)
		p.act()
		p.runUntilIdle()
	}
	more(p)
}

func (p *player) receive(w http.ResponseWriter, r *http.Request) {
	if p.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if r.Header.Get("Flexd-Kind") == "invitation" {
		p.receiveInvitation(w, r)
		return
	}

	if isDispatch(r) {
		p.receiveDispatch(w, r)
		return
	}
	p.endpoint.ServeHTTP(w, r)
}

func (p *player) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("line %d (%s) at %s: %v", p.line.Number, p.line.Text, p.now.Format(time.RFC3339), err)
	}
}

func (p *player) wrong(format string, args ...any) {
	p.Helper()
	p.Errorf("line %d (%s): %s", p.line.Number, p.line.Text, fmt.Sprintf(format, args...))
}

func (p *player) runUntilIdle() {
	p.must(p.app.RunUntilIdle(p.Context()))
	p.must(p.app.Push.Drain(p.Context(), p.org))
}

// until lets time pass to the instant, step by step.
func (p *player) until(at time.Time) {
	for last := p.now; p.now.Before(at); {
		step := stepLength
		switch {
		case p.step > 0:
			step = p.step
		case len(p.chargers) == 0:
			step = flex.HalfHour // nothing moves but the background jobs, and theirs are due by half-hours
		case p.now.Sub(last) >= time.Hour:
			step = 3 * stepLength // what the line set off has settled
		}

		next := p.now.Truncate(step).Add(step)
		if next.After(at) {
			next = at
		}
		time.Sleep(time.Until(next))
		p.now = next
		p.runUntilIdle()
		p.run()
	}
}

// run lets the chargers draw and reports what has been metered.
func (p *player) run() {
	var readings []client.ReadingDataPoint
	for name, c := range p.chargers {
		if _, registered := p.assets[name]; !registered {
			continue
		}
		c.RunTo(p.now, func(flex.Period) flex.Price { return 0 })
		for _, m := range c.Meter(p.now) {
			p.drawn[name][m.Period] += m.Energy
			readings = append(readings, client.ReadingDataPoint{AssetID: p.assets[name], StartTimestamp: client.At(m.Period.Start()),
				EndTimestamp: client.At(m.Period.End()), Value: m.Energy / 1000, Label: client.LabelChargerEnergy})
		}
	}

	if len(readings) > 0 {
		p.post(readings)
	}
}

// post reports readings, which must all be accepted.
func (p *player) post(readings []client.ReadingDataPoint) {
	verdicts, err := p.client.PostReadings(p.Context(), readings)
	p.must(err)
	for _, v := range verdicts.Responses {
		if !v.Accepted {
			p.wrong("a reading was refused: %s", v.Error)
		}
	}
}

// clock returns the next instant at or after the start of the day's noon before now at
// which London's clocks read the wall time.
func (p *player) clock(text string) time.Time {
	wall, err := flex.ParseWallTime(text)
	p.must(err)
	day := flex.DayAt(p.now)
	for _, d := range []flex.Day{day, day.Add(1)} {
		at := time.Date(d.Year, d.Month, d.Dom, 0, 0, 0, 0, flex.London).Add(0)
		y, m, dom := at.Date()
		at = time.Date(y, m, dom, int(time.Duration(wall)/time.Hour), int(time.Duration(wall)/time.Minute)%60, 0, 0, flex.London)
		if !at.Before(p.now) {
			return at.UTC()
		}
	}
	return time.Time{}
}

func (p *player) act() {
	ctx, a := p.Context(), p.line.Args
	switch p.line.Verb {
	case "site":
		p.onboard(a[0], a[1] != "")
	case "charger":
		p.addCharger(a[0], a[1], a[2])
	case "prices":
		p.publish(a[0], a[1])
	case "plug in":
		p.plugIn(a[0], a[1])
	case "plug out":
		p.chargers[a[0]].Plug(nil, p.now)

		p.must(p.client.PlugOut(ctx, p.assets[a[0]]))
	case "intent":
		in := p.wish(a[1])
		p.must(p.client.SetIntent(ctx, p.assets[a[0]], client.IntentEventRequest{Intent: *in.Intent}))
	case "tariff":
		in := p.wish("tariff " + a[1])

		p.must(p.client.UpdateTariff(ctx, p.assets[a[0]], client.TariffUpdateEventRequest{Tariff: *in.Tariff}))
	case "draws":
		kw, err := strconv.ParseFloat(a[1], 64)
		p.must(err)
		p.draws[a[0]] = flex.FromKW(kw)
	case "charge now":
		d, err := time.ParseDuration(a[1])
		p.must(err)

		p.must(p.client.ChargeNow(ctx, p.assets[a[0]], client.ChargeNowEventRequest{EndAt: client.At(p.now.Add(d))}))
	case "as planned":
		p.must(p.client.ChargeNowDeleted(ctx, p.assets[a[0]]))
	case "pause":
		p.pause(a[0], p.clock(a[1]), p.clock(a[2]))
	case "endpoint":
		p.down.Store(a[0] == "down")
	case "unenrol":
		_, err := p.client.Unenrol(ctx, p.sites[a[0]], client.UnenrolRequest{Proposition: client.PropositionFullAssetSchedule})

		p.must(err)
	case "enrol":
		_, err := p.client.Enrol(ctx, p.sites[a[0]], client.EnrolRequest{Proposition: client.PropositionFullAssetSchedule, OverrideWithdrawal: true})
		p.must(err)
	case "delete":
		p.must(p.client.DeleteAsset(ctx, p.assets[a[0]]))

		delete(p.assets, a[0])
	case "cap":
		p.cap(a[0], strings.Fields(a[1]))
	case "fuse":
		p.must(p.client.Do(ctx, "PATCH", "/entities/site/"+p.sites[a[1]].String(), nil, map[string]any{"import_capacity_kw": p.number(a[0])}, nil))
	case "instruct":
		p.instruct(a[0], a[1], p.clock(a[2]), p.clock(a[3]))
	case "stop":
		p.must(p.client.Do(ctx, "POST", "/grid/instructions/stop", nil, nil, nil))
	case "offboard":
		_, err := p.client.Offboard(ctx, p.sites[a[0]])
		p.must(err)

		for name := range p.assets {
			delete(p.assets, name)
		}
	default:
		if !p.actBattery() && !p.actHome() && !p.actOpenADR() && !p.actProduct() {
			p.expect()
		}
	}
}

// cap sets one cap, of the whole fleet or of some of its sites.
func (p *player) cap(kw string, sites []string) {
	power, err := strconv.ParseFloat(kw, 64)
	p.must(err)
	in := wire.Caps{Fleet: &wire.Cap{CapKW: &power}}
	if len(sites) > 0 {
		in = wire.Caps{Groups: []wire.CapGroup{{Name: "feeder", CapKW: &power}}}
	}
	for _, s := range sites {
		in.Groups[0].SiteIDs = append(in.Groups[0].SiteIDs, flex.SiteID(p.sites[s]))
	}
	p.must(p.client.Do(p.Context(), "PUT", "/caps", nil, in, nil))
}

// instruct has the fleet draw less or more than planned, or not above a power.
func (p *player) instruct(how, text string, from, to time.Time) {
	kw, err := strconv.ParseFloat(text, 64)
	p.must(err)
	in := wire.InstructionRequest{ChangeKW: &kw, StartTimestamp: wire.At(from), EndTimestamp: wire.At(to), Service: "dno", Reason: "evening peak"}
	switch how {
	case "less":
		kw = -kw
	case "at most":
		in.ChangeKW, in.LimitKW = nil, &kw
	}
	p.must(p.client.Do(p.Context(), "POST", "/grid/instructions", nil, in, &p.instructed))
}

// expectDrew compares the most that the fleet drew in any half-hour.
func (p *player) expectDrew(how, text string) {
	want, err := strconv.ParseFloat(text, 64)
	p.must(err)
	sums, most := map[flex.Period]float64{}, 0.0
	for _, drawn := range p.drawn {
		for at, e := range drawn {
			sums[at] += e
			most = max(most, sums[at]*2/1000)
		}
	}
	if how == "<=" && most > want+0.01 || how == ">=" && most < want-0.01 {
		p.wrong("it drew %.2f kW", most)
	}
}

// expectEnvelope compares the most that the fleet can draw in a window, or the least that it
// must.
func (p *player) expectEnvelope(most bool, text string, from, to time.Time) {
	want, err := strconv.ParseFloat(text, 64)
	p.must(err)
	var e wire.EnvelopeResponse
	p.must(p.client.Do(p.Context(), "GET", "/grid/envelope", url.Values{"windows": {"true"}}, nil, &e))

	for _, w := range e.Windows {
		if !w.StartTimestamp.Time.Equal(from) || !w.EndTimestamp.Time.Equal(to) {
			continue
		}
		got := w.LeastKWh
		if most {
			got = w.MostKWh
		}
		if math.Abs(got-want) > slack*float64(max(1, e.NumControlled)) {
			p.wrong("it is %.3f kWh", got)
		}

		return
	}
	p.wrong("the envelope has no such window")
}

func (p *player) onboard(name string, pause bool) {
	proposition := flex.FullAssetSchedule
	if pause {
		proposition = flex.LimitedPause
	}

	n := len(p.sites) + 1
	meter := fmt.Sprintf("mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n%s,import,%d High Street,SW1A 1AA,true,true,true\n", mpan(n), n)
	_, err := p.app.ImportMeters(p.Context(), strings.NewReader(meter), nil)
	p.must(err)
	in := onboarding(mpan(n), client.Proposition(proposition))
	in.Site.StreetAddress = fmt.Sprintf("%d High Street", n)
	in.Site.GaveBoundaryMeterConsentAt = client.At(p.now.AddDate(0, 0, -pastDays-1))
	in.Assets[0].ExternalID = "spare-" + name
	r, err := p.client.Onboard(p.Context(), in)
	p.must(err)
	p.sites[name], p.spare[name] = r.Site.SiteID, r.Assets[0].AssetID
}

func (p *player) addCharger(name, site, kw string) {
	power, err := strconv.ParseFloat(kw, 64)
	p.must(err)
	a, err := p.client.CreateAsset(p.Context(), client.AssetRequest{ExternalID: name, Type: client.AssetCharger, SiteID: p.sites[site],
		Properties: &client.AssetProperties{PowerKW: &power}})
	p.must(err)
	c := &sim.Charger{ExternalID: name, Power: flex.FromKW(power)}
	c.Plug(nil, p.now)
	p.chargers[name], p.assets[name], p.drawn[name] = c, a.ID, map[flex.Period]float64{}
	p.endpoint.Add(c)
}

// publish makes one price hold for two days from this London day, but in the times named.
func (p *player) publish(flat, except string) {
	price, err := strconv.ParseFloat(flat, 64)
	p.must(err)
	day := flex.DayAt(p.now)
	var prices []flex.PricedPeriod
	for q := flex.PeriodAt(day.Start()); q.Start().Before(day.Add(2).Start()); q = q.Add(1) {
		prices = append(prices, flex.PricedPeriod{Period: q, Price: flex.FromGBPPerMWh(price), Known: true})
	}

	words := strings.Fields(except)
	for i := 0; i+1 < len(words); i += 2 {
		from, to, _ := strings.Cut(words[i], "-")
		special, err := strconv.ParseFloat(words[i+1], 64)
		p.must(err)

		for j := range prices {
			wall := prices[j].Period.Start().In(flex.London).Format("15:04")
			if from <= wall && wall < to {
				prices[j].Price = flex.FromGBPPerMWh(special)
			}
		}
	}
	p.must(p.app.Publish(p.Context(), "story", time.Time{}, prices))
}

func (p *player) wish(words string) client.PlugInEventRequest {
	in, err := sim.PlugIn(words, p.now)
	p.must(err)
	return in
}

func (p *player) plugIn(name, words string) {
	c := p.chargers[name]
	if c.Car() == nil { // a repeated event is the same car
		c.Plug(&sim.Car{Name: name, Rate: cmp.Or(p.draws[name], c.Power), Room: 200_000}, p.now)
	}
	p.must(p.client.PlugIn(p.Context(), p.assets[name], p.wish(words)))
}

func (p *player) pause(name string, from, to time.Time) {
	if to.Before(from) {
		to = to.Add(24 * time.Hour)
	}
	got, err := p.client.PlugInSchedule(p.Context(), p.assets[name], client.PlugInScheduleEventRequest{ChargingSchedule: []client.ChargingScheduleBlock{
		{StartTimestamp: from.Format(time.RFC3339), EndTimestamp: to.Format(time.RFC3339)}}})

	p.must(err)
	p.paused = nil
	if blocks := got.ModifiedChargingSchedule; len(blocks) == 2 {
		a, err := time.Parse(time.RFC3339, blocks[0].EndTimestamp)
		p.must(err)
		b, err := time.Parse(time.RFC3339, blocks[1].StartTimestamp)
		p.must(err)
		p.paused = &flex.Span{From: a, To: b}
	}
}

func (p *player) charged(name string) (kwh float64) {
	if car := p.chargers[name].Car(); car != nil {
		return car.Got / 1000
	}
	for _, wh := range p.drawn[name] {
		kwh += wh / 1000
	}
	return kwh
}

// slack is what a story forgives: the rounding of a minute, and the draw before a push.
const slack = 0.13 // kWh

func (p *player) expect() {
	a := p.line.Args
	switch p.line.Verb {
	case "expect push":
		if p.heard[a[0]] == p.known[a[0]] {
			p.wrong("no push came")
		}

		p.known[a[0]] = p.heard[a[0]]
	case "expect no push":
		for name, n := range p.heard {
			if n != p.known[name] {
				p.wrong("%d pushes came for %s", n-p.known[name], name)
			}
		}
	case "expect pushes":
		most, err := strconv.Atoi(a[0])

		p.must(err)
		if n := p.heard[a[1]] - p.known[a[1]]; n > most {
			p.wrong("%d pushes came", n)
		}

		p.known[a[1]] = p.heard[a[1]]
	case "expect charged":
		want, err := strconv.ParseFloat(a[2], 64)
		p.must(err)

		got := p.charged(a[0])
		if a[1] == ">=" && got < want-0.001 || a[1] == "<=" && got > want+0.001 || a[1] == "==" && (got < want-slack || got > want+slack) {
			p.wrong("it charged %.3f kWh", got)
		}
	case "expect gave":
		got, want := p.chargers[a[0]].Car().Gave/1000, p.number(a[2])

		if a[1] == ">=" && got < want || a[1] == "<=" && got > want {
			p.wrong("it gave %.3f kWh", got)
		}
	case "expect peak":
		p.expectPeak(a[0], a[1], a[2])
	case "expect open", "expect shut":
		p.expectLimit(a[0], p.clock(a[1]), p.clock(a[2]), p.line.Verb == "expect open")
	case "expect drew":
		p.expectDrew(a[0], a[1])
	case "expect envelope":
		p.expectEnvelope(a[0] == "can", a[1], p.clock(a[2]), p.clock(a[3]))

	case "expect instructed":
		if got := fmt.Sprintf("%.0f", 100*p.instructed.Reached); got != a[0] {
			p.wrong("it reaches %s %%: %s", got, p.instructed.Why)
		}
	case "expect free":
		if _, profile := p.chargers[a[0]].Received(); profile.LimitAt(p.now) != flex.NoLimit {
			p.wrong("it is held at %d W", profile.LimitAt(p.now))
		}
	case "expect paused":
		if want := (flex.Span{From: p.clock(a[0]), To: p.clock(a[1])}); p.paused == nil || !p.paused.From.Equal(want.From) || !p.paused.To.Equal(want.To) {
			p.wrong("paused %v, want %v", p.paused, want)
		}

	case "expect unpaused":
		if p.paused != nil {
			p.wrong("paused %v", *p.paused)
		}
	case "expect reward":
		p.expectReward(a[0], a[1], a[2])
	default:
		if !p.expectProduct() {
			p.expectOpenADR()
		}
	}
}

func (p *player) expectPeak(name, kwh, times string) {
	want, err := strconv.ParseFloat(kwh, 64)
	p.must(err)
	got := 0.0

	for period, wh := range p.drawn[name] {
		wall := period.Start().In(flex.London).Format("15:04")
		inside := false
		for span := range strings.SplitSeq(times, ",") {
			from, to, _ := strings.Cut(strings.TrimSpace(span), "-")
			inside = inside || from <= wall && wall < to
		}

		if !inside {
			got += wh / 1000
		}
	}
	if got < want-slack || got > want+slack {
		p.wrong("it charged %.3f kWh then", got)
	}
}

func (p *player) expectLimit(name string, from, to time.Time, open bool) {
	_, profile := p.chargers[name].Received()
	if to.Before(from) {
		to = to.Add(24 * time.Hour)
	}
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		if got := profile.LimitAt(at) > 0; got != open {
			p.wrong("at %s the limit is %d W", at.In(flex.London).Format("15:04"), profile.LimitAt(at))
			return
		}
	}
}

func (p *player) expectReward(site, how, text string) {
	want, err := strconv.Atoi(text)
	p.must(err)
	b, err := p.client.Balance(p.Context(), p.sites[site])
	p.must(err)
	if got := int(b.CurrentBalancePence); how == ">=" && got < want || how == "==" && got != want {
		p.wrong("its balance is %d p", got)
	}
}

// TestStories plays every story of the folder in a bubble of its own.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("stories/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}

			lines, err := sim.ParseStory(string(text))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { play(t, lines) })
		})
	}
}

func TestParseStory(t *testing.T) {
	for text, want := range map[string]string{
		"site home":   "line 1: a story begins with an at line",
		"at tomorrow": `line 1: "tomorrow" is not a time`,
		"at 2026-04-13T18:00Z\nat 2026-04-13T17:00Z": "line 2: 2026-04-13T17:00Z is before",
		"at 2026-04-13T18:00Z\n\nleaf takes a nap":   `line 3: "leaf takes a nap" is none of the lines`,
	} {
		if _, err := sim.ParseStory(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	lines, err := sim.ParseStory("# a comment\nat 2026-10-24T18:00+01:00\n  car2   plugs in  need 20kWh by 07:00 # another\n")
	if err != nil || len(lines) != 1 || lines[0].Number != 3 || lines[0].Verb != "plug in" || lines[0].Args[0] != "car2" {
		t.Errorf("read %+v, %v", lines, err)
	}
}
