package sim_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// pastDays is for how long a story's home has been metered when the story says what it used.
const pastDays = 14

// batteries is what a story knows of its home batteries.
type batteries struct {
	secret  string                    // of the dispatch endpoint
	heard   []client.DispatchEvent    // that no line has looked at yet
	last    map[string]client.EventID // by battery
	changed map[string]time.Time      // when the schedule had last changed, as the story knows
}

// receiveDispatch is the client's endpoint for dispatch events.
func (p *player) receiveDispatch(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		_, err = client.VerifyWebhook(p.batteries.secret, r.Header, body, p.now)
	}
	var e client.DispatchEvent
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	p.hearing.Lock()
	defer p.hearing.Unlock()
	p.batteries.heard = append(p.batteries.heard, e)
}

// actBattery does what a line says of batteries, and reports whether it was such a line.
func (p *player) actBattery() bool {
	ctx, a := p.Context(), p.line.Args
	switch p.line.Verb {
	case "battery":
		p.addBattery(a[0], a[1], p.number(a[2]), p.number(a[3]), a[4] == "")
	case "used":
		p.metered(a[0], flex.BoundaryImportPower, a[1], a[2])
	case "roof":
		p.metered(a[0], flex.SolarPower, a[1], a[2])
	case "roof will":
		said := client.SolarForecast{Source: "story"}
		today := flex.DayAt(p.now)

		for q := flex.PeriodAt(today.Start()); q.Start().Before(today.Add(2).Start()); q = q.Add(1) {
			said.HalfHours = append(said.HalfHours, client.SolarHalfHour{StartTimestamp: client.At(q.Start()), EnergyKWh: p.powerAt(q, a[1], a[2]) / 2})
		}

		_, err := p.client.SetSolarForecast(ctx, p.sites[a[0]], said)
		p.must(err)
	case "rates":
		p.must(p.app.DB.Write(ctx, p.org, func(tx *store.Tx) error {
			o, err := tx.OrgRecord(ctx)
			o.Settings.Rates = flex.BatteryRates{Peak: flex.Some(p.number(a[0])), OffPeak: flex.Some(p.number(a[1])), Export: flex.Some(p.number(a[2]))}

			return errors.Join(err, tx.SetSettings(ctx, o.Settings))
		}))
	case "on the market":
		p.must(p.client.UpdateTariff(ctx, p.assets[a[0]], client.TariffUpdateEventRequest{
			Tariff: client.Tariff{OffPeakTimes: "", Timezone: "Europe/London", TariffType: client.TariffDynamic}}))
	case "holds":
		p.read(p.assets[a[0]], flex.BatteryStateOfCharge, flex.Span{From: p.now, To: p.now}, p.number(a[1]))
	case "runs":
		p.read(p.assets[a[0]], flex.BatteryInverterPower, flex.Span{From: p.now.Add(-time.Minute), To: p.now}, p.number(a[1]))
	case "reports":
		p.must(p.client.Callback(ctx, p.assets[a[0]], p.batteries.last[a[0]], client.EventResponse{Timestamp: client.At(p.now), Status: client.CallbackStatus(flex.CallbackStatus(a[1]))}))
	case "dispatches":
		e, _, err := p.app.Push.SetEndpoint(ctx, p.org, flex.DispatchEndpoint, delivery.Settings{URL: "http://post/" + dispatches})

		p.must(err)
		p.batteries.secret = e.Secret.Reveal()
	case "environment":
		p.app.DB.Environment = flex.Environment(a[0])
	default:
		return false
	}
	return true
}

// dispatches is the path of the endpoint for dispatch events.
const dispatches = "dispatches"

func isDispatch(r *http.Request) bool { return path.Base(r.URL.Path) == dispatches }

func (p *player) number(text string) float64 {
	p.Helper()
	f, err := strconv.ParseFloat(text, 64)
	p.must(err)
	return f
}

func (p *player) addBattery(name, site string, kw, kwh float64, model bool) {
	in := client.AssetRequest{ExternalID: name, Type: client.AssetBattery, SiteID: p.sites[site],
		Properties: &client.AssetProperties{PowerKW: &kw, CapacityKWh: &kwh}}
	if model {
		in.AssetModel = "sandbox battery"
	}
	made, err := p.client.CreateAsset(p.Context(), in)
	p.must(err)
	p.assets[name] = made.ID
}

func (p *player) read(asset client.AssetID, label flex.Label, span flex.Span, value float64) {
	p.post([]client.ReadingDataPoint{{AssetID: asset, StartTimestamp: client.At(span.From), EndTimestamp: client.At(span.To), Value: value, Label: client.Label(label)}})
}

// metered reports what a home drew or its roof gave on each of the days before this one: a
// power, and others in the times named.
func (p *player) metered(site string, label flex.Label, flat, except string) {
	var readings []client.ReadingDataPoint
	for k := pastDays; k > 0; k-- {
		day := flex.DayAt(p.now).Add(-k)
		for n := 1; n <= day.Periods(); n++ {
			q := day.Period(n)
			readings = append(readings, client.ReadingDataPoint{AssetID: p.spare[site], StartTimestamp: client.At(q.Start()), EndTimestamp: client.At(q.End()),
				Value: p.powerAt(q, flat, except), Label: client.Label(label)})
		}
	}
	p.post(readings)
}

// powerAt is the power that a line names for a half-hour, in kW: one, and others in times.
func (p *player) powerAt(q flex.Period, flat, except string) float64 {
	kw, wall := p.number(flat), q.Start().In(flex.London).Format("15:04")
	words := strings.Fields(strings.ReplaceAll(except, "kW", ""))
	for i := 0; i+1 < len(words); i += 2 {
		if from, to, _ := strings.Cut(words[i], "-"); from <= wall && wall < to {
			kw = p.number(words[i+1])
		}
	}
	return kw
}

// expectBattery looks at what a line says must be so of batteries.
func (p *player) expectBattery() {
	a := p.line.Args
	switch p.line.Verb {
	case "expect action":
		p.expectAction(a[0], a[1], a[2], p.times(a[3], a[4]))
	case "expect mode":
		p.expectMode(a[0], a[1], a[2], p.times(a[3], a[4]))
	case "expect answer":
		p.expectAnswer(a[0], a[1], a[2])
	case "expect replanned", "expect not replanned":
		s, err := p.client.BatterySchedule(p.Context(), p.assets[a[0]])

		p.must(err)
		before, changed := p.batteries.changed[a[0]], s.ScheduleLastUpdated.Time
		if anew := !changed.Equal(before); anew != (p.line.Verb == "expect replanned") {
			p.wrong("its schedule last changed at %s", changed.In(flex.London).Format("15:04:05"))
		}

		p.batteries.changed[a[0]] = changed
	case "expect dispatch":
		p.expectDispatch(a[0], a[1] == "charge", p.times(a[2], a[3]))
	case "expect no dispatch":
		if n := len(p.batteries.heard); n > 0 {
			p.wrong("%d came, the first %+v", n, p.batteries.heard[0])
		}
	case "expect release":
		p.expectRelease(a[0], a[1])
	}
}

// times is the next time that London's clocks go from one to the other.
func (p *player) times(from, to string) flex.Span {
	s := flex.Span{From: p.clock(from), To: p.clock(to)}
	if !s.To.After(s.From) {
		s.To = s.To.Add(24 * time.Hour)
	}
	return s
}

// expectAction holds the battery schedule, as a client gets it, against an action.
func (p *player) expectAction(name, action, how string, when flex.Span) {
	s, err := p.client.BatterySchedule(p.Context(), p.assets[name])
	p.must(err)
	p.expectHalfHours(how, when, func(at time.Time) (string, bool) {
		for _, step := range s.ScheduleSteps {
			if !at.Before(step.StartTimestamp.Time) && at.Before(step.EndTimestamp.Time) {
				return step.Action, step.Action == action || action == "deviation" && step.AllowDeviation
			}
		}
		return "nothing", false
	})
}

// expectMode holds today's dispatch plan, as a client gets it, against a mode.
func (p *player) expectMode(name, mode, how string, when flex.Span) {
	s, err := p.client.TodaysDispatchSchedule(p.Context(), p.assets[name])
	p.must(err)
	p.expectHalfHours(how, when, func(at time.Time) (string, bool) {
		for _, period := range s.Periods {
			if !at.Before(period.StartTimestamp.Time) && at.Before(period.EndTimestamp.Time) {
				return period.Action, period.Action == mode
			}
		}
		return "nothing", false
	})
}

func (p *player) expectHalfHours(how string, when flex.Span, says func(time.Time) (string, bool)) {
	var said []string
	yes := 0
	for at := when.From; at.Before(when.To); at = at.Add(flex.HalfHour) {
		word, so := says(at)
		if said = append(said, at.In(flex.London).Format("15:04 ")+word); so {
			yes++
		}
	}
	if how == "throughout" && yes < len(said) || how == "sometime in" && yes == 0 || how == "never in" && yes > 0 {
		p.wrong("it is %s", strings.Join(said, ", "))
	}
}

// expectAnswer asks for the battery schedule, or for today's dispatch plan.
func (p *player) expectAnswer(what, name, want string) {
	asset, registered := p.assets[name]
	if !registered {
		asset = client.AssetID{1} // that never was
	}

	n := 0
	var err error
	if what == "plan" {
		var s client.PlainDispatchScheduleResponse
		s, err = p.client.TodaysDispatchSchedule(p.Context(), asset)
		n = len(s.Periods)
	} else {
		var s client.BatteryScheduleResponse
		s, err = p.client.BatterySchedule(p.Context(), asset)
		n = len(s.ScheduleSteps)
	}

	var refused *client.Error
	switch got := "full"; {
	case errors.As(err, &refused):
		if got = strconv.Itoa(refused.Status); got != want {
			p.wrong("the answer is %s", got)
		}
	case err != nil:
		p.must(err)
	default:
		if n == 0 {
			got = "empty"
		}

		if got != want {
			p.wrong("it is %s", got)
		}
	}
}

func (p *player) expectDispatch(name string, charge bool, when flex.Span) {
	for i, e := range p.batteries.heard {
		if e.AssetID == p.assets[name] && e.FromTime.Equal(when.From) && e.ToTime.Equal(when.To) && e.LevelKW > 0 == charge && e.LevelKW != 0 {
			p.batteries.heard = append(p.batteries.heard[:i:i], p.batteries.heard[i+1:]...)
			p.batteries.last[name] = e.EventID
			return
		}
	}
	p.wrong("none came: %+v", p.batteries.heard)
}

func (p *player) expectRelease(name, want string) {
	ds, err := p.app.Push.Dispatches(p.Context(), p.org, 100)
	p.must(err)
	for _, d := range ds {
		if client.EventID(d.ID) == p.batteries.last[name] {
			if got := string(d.Assets[0].Release); got != want {
				p.wrong("it is %s", got)
			}
			return
		}
	}
	p.wrong("there was no dispatch")
}
