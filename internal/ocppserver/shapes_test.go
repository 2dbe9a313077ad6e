package ocppserver

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// drawing is when the charger of the shapes gives its 7.4 kW, in minutes from night on: one
// session with a pause, and one on the next evening.
var drawing = [][2]int{{10, 100}, {150, 200}, {1205, 1265}}

// sessions are its transactions, in minutes from night on.
var sessions = [][2]int{{10, 205}, {1205, 1270}}

// drawnBy is what the charger's own register shows, in Wh.
func drawnBy(at time.Time) float64 {
	minutes := at.Sub(night).Minutes()
	wh := 300_000.33
	for _, d := range drawing {
		wh += 7400.0 / 60 * (min(max(minutes, float64(d[0])), float64(d[1])) - float64(d[0]))
	}
	return wh
}

func wattsAt(at time.Time) float64 { return (drawnBy(at.Add(time.Second)) - drawnBy(at)) * 3600 }

// shape is how a charger sends its meter.
type shape struct {
	every   time.Duration // between samples
	only    bool          // within transactions
	values  func(at time.Time, begin float64) string
	stamp   func(at time.Time) string
	base    func(begin float64) float64 // taken off the registers of a session that began so
	whole   func(float64) float64       // of meterStart and meterStop
	point   bool                        // connector 0
	noStart bool                        // meterStart and meterStop are 0
	data    bool                        // samples are transactionData
	mix     func([]said) []said
	ahead   time.Duration // of its clock
	planned bool          // the plan is known
	held    bool          // nothing may be passed on but for half-hours without energy
}

// said is a message and when it is sent.
type said struct {
	at      time.Time
	action  string
	payload string
}

func one(format string) func(time.Time, float64) string {
	return func(at time.Time, begin float64) string { return fmt.Sprintf(format, drawnBy(at)-begin) }
}

func scaled(format string, scale float64) func(time.Time, float64) string {
	return func(at time.Time, begin float64) string { return fmt.Sprintf(format, (drawnBy(at)-begin)*scale) }
}

const energyWh = `{"value":"%.2f","measurand":"Energy.Active.Import.Register","unit":"Wh"}`

// shapes are the ways in which chargers were found to send their meters.
var shapes = map[string]shape{
	"Wh":                          {},
	"kWh":                         {values: scaled(`{"value":"%.3f","measurand":"Energy.Active.Import.Register","unit":"kWh"}`, 0.001)},
	"no measurand, no unit":       {values: one(`{"value":"%.0f"}`)},
	"phases and a total":          {values: one(`{"value":"7","phase":"L1"},{"value":"8","phase":"L2"},` + energyWh)},
	"signed and raw":              {values: one(`{"value":"AP;0;3","format":"SignedData"},{"format":"Raw",` + energyWh[1:])},
	"every 5 minutes":             {every: 5 * time.Minute},
	"every minute":                {every: time.Minute},
	"milliseconds":                {stamp: func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }},
	"3 s late":                    {stamp: func(at time.Time) string { return at.Add(-3 * time.Second).Format(time.RFC3339) }},
	"an hour's zone":              {stamp: func(at time.Time) string { return at.In(time.FixedZone("", 3600)).Format(time.RFC3339) }},
	"no zone":                     {stamp: func(at time.Time) string { return at.Format("2006-01-02T15:04:05") }},
	"export first":                {values: one(`{"value":"5","measurand":"Energy.Active.Export.Register","unit":"Wh"},` + energyWh)},
	"transactionData":             {data: true, only: true},
	"every 20 minutes":            {every: 20 * time.Minute, only: true, planned: true},
	"backwards":                   {mix: reversed},
	"one zero":                    {mix: oneValue("0")},
	"4294967295":                  {mix: oneValue("4294967295")},
	"Transaction.Begin first":     {values: beginFirst, only: true, every: 5 * time.Minute},
	"a live value before a queue": {mix: queued},
	"an hour ahead":               {ahead: time.Hour},
	"an hour behind":              {ahead: -time.Hour},
	"phases alone":                {values: phases},
	"intervals":                   {values: intervals(15 * time.Minute), noStart: true},
	"power alone":                 {values: watts, every: time.Minute, noStart: true, planned: true},
	"power, start and stop":       {values: watts, every: time.Minute, only: true, planned: true},
	"inlet":                       {values: one(`{"location":"Inlet",` + energyWh[1:])},
	"body":                        {values: one(`{"location":"Body",` + energyWh[1:])},
	"connector 0":                 {point: true},
	"start and stop":              {every: 48 * time.Hour, planned: true},
	"start and stop, no plan":     {every: 48 * time.Hour, held: true},
	"whole Wh rounded up":         {whole: math.Ceil},
	"whole Wh rounded down":       {whole: math.Floor},
	"hourly":                      {every: time.Hour, planned: true},
	"hourly, no plan":             {every: time.Hour, held: true},
	"silent outside sessions":     {only: true},
	"from 0 with each session":    {only: true, base: func(begin float64) float64 { return begin }},
	"from 0, start and stop":      {every: 48 * time.Hour, only: true, planned: true, base: func(begin float64) float64 { return begin }},
	"lifetime, start at 0":        {noStart: true},
	"number":                      {values: one(`{"value":%.2f,"unit":"Wh"}`)},
	"comma": {values: func(at time.Time, _ float64) string {
		return `{"value":"` + strings.Replace(fmt.Sprintf("%.3f", drawnBy(at)/1000), ".", ",", 1) + `","unit":"kWh"}`
	}},
	"KWh":                        {values: scaled(`{"value":"%.3f","unit":"KWh"}`, 0.001)},
	"no timestamps":              {stamp: func(time.Time) string { return "" }},
	"signed alone":               {values: func(time.Time, float64) string { return `{"value":"AP;0;3","format":"SignedData"}` }, held: true},
	"three days late":            {mix: threeDaysLate},
	"26 hours behind, set right": {ahead: -26 * time.Hour, mix: setRight},
	"26 hours ahead, set right":  {ahead: 26 * time.Hour, mix: setRight},
}

func phases(at time.Time, begin float64) string {
	third := (drawnBy(at) - begin) / 3
	return fmt.Sprintf(`{"value":"%.2f","phase":"L1"},{"value":"%.2f","phase":"L2"},{"value":"%.2f","phase":"L3"}`, third, third, third)
}

func watts(at time.Time, _ float64) string {
	return fmt.Sprintf(`{"value":"%.1f","measurand":"Power.Active.Import","unit":"W"},{"value":"230","measurand":"Voltage"}`, wattsAt(at))
}

func intervals(every time.Duration) func(time.Time, float64) string {
	return func(at time.Time, _ float64) string {
		return fmt.Sprintf(`{"value":"%.2f","measurand":"Energy.Active.Import.Interval","unit":"Wh"}`, drawnBy(at)-drawnBy(at.Add(-every)))
	}
}

func beginFirst(at time.Time, _ float64) string {
	begin := drawnBy(night)
	if at.After(night.Add(10 * time.Hour)) {
		begin = drawnBy(night.Add(10 * time.Hour))
	}
	return fmt.Sprintf(`{"value":"%.2f","context":"Transaction.Begin"},{"value":"%.2f","context":"Sample.Periodic"}`, begin, drawnBy(at))
}

// reversed sends the meter values of the first session after it, the last one first.
func reversed(all []said) []said {
	end := night.Add(210 * time.Minute)
	for i, m := range all {
		if m.action == "MeterValues" && m.at.Before(end) {
			all[i].at = end.Add(end.Sub(m.at) / 100)
		}
	}
	return all
}

// queued keeps all of the first session until after a live value.
func queued(all []said) []said {
	for i, m := range all {
		if m.at.Before(night.Add(240*time.Minute)) && m.at.After(night) {
			all[i].at = night.Add(256*time.Minute + time.Duration(i)*time.Second)
		}
	}
	return all
}

// threeDaysLate keeps everything for three days.
func threeDaysLate(all []said) []said {
	for i := range all {
		all[i].at = night.Add(72*time.Hour + time.Duration(i)*100*time.Millisecond)
	}
	return all
}

// setRight sets the clock right at minute 62; what is sent from then on is stamped right.
func setRight(all []said) []said {
	for i, m := range all {
		if m.at.After(night.Add(62 * time.Minute)) {
			for _, ahead := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
				wrong := m.at.Add(ahead).Format(time.RFC3339)
				all[i].payload = strings.ReplaceAll(all[i].payload, wrong, m.at.Format(time.RFC3339))
			}
		}
	}
	return all
}

// oneValue puts a single wrong register into the first session.
func oneValue(wrong string) func([]said) []said {
	return func(all []said) []said {
		at := night.Add(52 * time.Minute)
		return append(all, said{at, "MeterValues", fmt.Sprintf(
			`{"connectorId":1,"meterValue":[{"timestamp":%q,"sampledValue":[{"value":%q,"unit":"Wh"}]}]}`, at.Format(time.RFC3339), wrong)})
	}
}

// messages is all that a charger of the shape sends.
func (s shape) messages() []said {
	stamped := func(at time.Time) string {
		if s.stamp != nil {
			return s.stamp(at.Add(s.ahead))
		}
		return at.Add(s.ahead).Format(time.RFC3339)
	}
	number := 1
	if s.point {
		number = 0
	}

	all := s.samples(number, stamped)
	for _, session := range sessions {
		from, to := night.Add(time.Duration(session[0])*time.Minute), night.Add(time.Duration(session[1])*time.Minute)
		all = append(all,
			said{from.Add(-time.Minute), "StatusNotification", fmt.Sprintf(`{"connectorId":1,"status":"Preparing","errorCode":"NoError","timestamp":%q}`, stamped(from.Add(-time.Minute)))},
			said{from, "StartTransaction", fmt.Sprintf(`{"connectorId":1,"idTag":"x","meterStart":%.0f,"timestamp":%q}`, s.end(from, from), stamped(from))},
			said{to, "StopTransaction", fmt.Sprintf(`{"transactionId":-1,"meterStop":%.0f,"timestamp":%q,"transactionData":[%s]}`, s.end(from, to), stamped(to), s.transactionData(from, to, stamped))},
			said{to.Add(time.Minute), "StatusNotification", fmt.Sprintf(`{"connectorId":1,"status":"Available","errorCode":"NoError","timestamp":%q}`, stamped(to.Add(time.Minute)))},
		)
	}

	slices.SortStableFunc(all, func(a, b said) int { return a.at.Compare(b.at) })
	if s.mix != nil {
		all = s.mix(all)
		slices.SortStableFunc(all, func(a, b said) int { return a.at.Compare(b.at) })
	}

	return all
}

// end is a meterStart or meterStop of the session that began at from.
func (s shape) end(from, at time.Time) float64 {
	wh := drawnBy(at)
	if s.noStart {
		return 0
	}
	if s.base != nil {
		wh -= s.base(drawnBy(from))
	}
	if s.whole != nil {
		return s.whole(wh)
	}
	return math.Round(wh)
}

func (s shape) value(at time.Time) string {
	begin := 0.0
	for _, session := range sessions {
		from := night.Add(time.Duration(session[0]) * time.Minute)
		if s.base != nil && !at.Before(from) {
			begin = s.base(drawnBy(from))
		}
	}
	if s.values == nil {
		return fmt.Sprintf(energyWh, drawnBy(at)-begin)
	}
	return s.values(at, begin)
}

func (s shape) samples(number int, stamped func(time.Time) string) (all []said) {
	if s.data {
		return nil
	}

	for at := night.Add(-time.Hour); at.Before(night.Add(23 * time.Hour)); at = at.Add(cmp.Or(s.every, 15*time.Minute)) {
		inside := false
		for _, session := range sessions {
			minutes := int(at.Sub(night).Minutes())
			inside = inside || minutes > session[0] && minutes < session[1]
		}

		if inside || !s.only {
			all = append(all, said{at, "MeterValues", fmt.Sprintf(`{"connectorId":%d,"meterValue":[{"timestamp":%q,"sampledValue":[%s]}]}`, number, stamped(at), s.value(at))})
		}
	}

	return all
}

func (s shape) transactionData(from, to time.Time, stamped func(time.Time) string) string {
	if !s.data {
		return ""
	}
	var all []string
	for at := from; !at.After(to); at = at.Add(5 * time.Minute) {
		all = append(all, fmt.Sprintf(`{"timestamp":%q,"sampledValue":[%s]}`, stamped(at), s.value(at)))
	}
	return strings.Join(all, ",")
}

// follow has a charger send the messages and returns the half-hours that are passed on, by
// their number from night on, and those that are held back.
func (s shape) follow(t *testing.T) (got map[int]float64, why []string) {
	now := night.Add(-2 * time.Hour)
	b := New(Settings{Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	c := &charger{b: b, id: "CP1", wakeup: make(chan struct{}, 1), connectors: map[int]*connector{}}
	kilowatts := 7.4
	n := c.connector(1)
	n.asset = client.AssetResponse{ID: client.AssetID{1}, Properties: &client.AssetProperties{PowerKW: &kilowatts}}
	if s.planned {
		n.allowed = plannedSteps()
	}

	work := func() {
		c.lateDue(now)
		if err := c.measure(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}

	for _, m := range s.messages() {
		for now.Add(5 * time.Minute).Before(m.at) {
			now = now.Add(5 * time.Minute)
			work()
		}

		now = m.at.Add(300 * time.Millisecond)
		if _, err := c.handleCall(m.action, []byte(m.payload)); err != nil {
			t.Fatalf("%s: %v", m.payload, err)
		}

		work()
	}

	now = now.Add(time.Hour)
	work()

	got = map[int]float64{}
	for _, r := range c.reports {
		if r.Label == flex.ChargerEnergy {
			got[flex.PeriodAt(r.From).Sub(flex.PeriodAt(night))] = r.KWh * 1000
		}
	}

	return got, slices.Collect(maps.Values(n.meter.Held))
}

// plannedSteps is the plan that the charger follows.
func plannedSteps() (steps []flex.Step) {
	at := night
	for _, d := range drawing {
		from, to := night.Add(time.Duration(d[0])*time.Minute), night.Add(time.Duration(d[1])*time.Minute)
		steps = append(steps, flex.Step{Span: flex.Span{From: at, To: from}}, flex.Step{Span: flex.Span{From: from, To: to}, Limit: flex.NoLimit})
		at = to
	}
	return append(steps, flex.Step{Span: flex.Span{From: at, To: night.Add(48 * time.Hour)}})
}

// TestShapes: whatever way a charger sends its meter, each half-hour with energy is within 1 %
// (8 Wh where it is nearly nothing) or held back with a reason, and none is above the
// charger's power.
func TestShapes(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			got, why := s.follow(t)
			missing := 0
			for p := range 48 {
				from := night.Add(time.Duration(p) * flex.HalfHour)
				want := drawnBy(from.Add(flex.HalfHour)) - drawnBy(from)
				wh, known := got[p]
				switch {
				case known && math.Abs(wh-want) > max(8, want/100):
					t.Errorf("half-hour %d: %v Wh, want %.0f", p, wh, want)

				case !known && want > 1:
					missing++
				}
			}

			if s.held && missing == 0 || !s.held && missing > 0 {
				t.Errorf("%d half-hours are missing: %q; got %v", missing, why, got)
			}
		})
	}
}
