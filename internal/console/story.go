package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// storyLine is something that happened, in plain words.
type storyLine struct {
	At   time.Time
	Kind string // event, schedule, push, callback
	Text string
	Path string // of a page that says more, "" if there is none
}

// story tells what happened to an asset in the span, in the order in which it did.
func (p *past) story() (lines []storyLine) {
	for _, t := range p.events {
		lines = append(lines, storyLine{At: t.At, Kind: "event", Text: eventText(t)})
	}

	for _, s := range p.schedules {
		lines = append(lines, storyLine{At: s.MadeAt, Kind: "schedule", Text: scheduleText(&s)})
		if d, ok := p.pushes[s.EventID]; ok {
			lines = append(lines, p.pushLine(&s, d))
		}
	}

	generation := map[flex.EventID]int64{}
	for _, s := range p.schedules {
		generation[s.EventID] = s.Generation
	}

	for _, c := range p.callbacks {
		lines = append(lines, storyLine{At: c.ReceivedAt, Kind: "callback", Path: "/console/deliveries/" + c.EventID.String(),
			Text: fmt.Sprintf("The client reported that schedule %d %s.", generation[c.EventID], callbackText[c.Status])})
	}

	slices.SortStableFunc(lines, func(a, b storyLine) int { return a.At.Compare(b.At) })
	return lines
}

// eventText says what an event told.
func eventText(t store.PastEvent) string {
	told := t.What
	var b strings.Builder

	switch control.Kind(t.Kind) {
	case control.PlugIn:
		b.WriteString("A car was plugged in")
	case control.PlugOut:
		b.WriteString("The car was unplugged")
	case control.IntentUpdate:
		b.WriteString("The user changed what they want")
	case control.TariffUpdate:
		b.WriteString("The tariff changed")
	case control.ChargeNow:
		b.WriteString("Charging now was asked for, until " + whenText(told.EndAt))
	case control.ChargeNowDeleted:
		b.WriteString("Charging now was taken back")
	case "plug_in_schedule":
		b.WriteString("The client asked for a pause in its own schedule")
	default:
		b.WriteString(words(t.Kind))
	}

	if told.VehicleRate > 0 {
		b.WriteString(" that takes " + kw(told.VehicleRate))
	}

	if in := told.Intent; in != nil {
		fmt.Fprintf(&b, ": %s by %s", kwh(in.Need), readyText(in))

		if in.MayChargePeak {
			b.WriteString(", at peak times too if need be")
		}

		if in.Mode == flex.Maximise {
			b.WriteString(", and as much as off-peak hours hold")
		}
	}

	if told.Tariff != nil {
		b.WriteString("; off-peak " + told.Tariff.OffPeak)
		if told.Tariff.Zone != flex.London.String() {
			b.WriteString(" in " + told.Tariff.Zone)
		}
	}

	return sentence(b.String())
}

func readyText(in *flex.Intent) string {
	if in.ReadyByLocal != nil {
		return in.ReadyByLocal.String()[:len("07:00")]
	}
	return in.ReadyBy.In(time.FixedZone("", int(in.ReadyByOffset/time.Second))).Format("15:04")
}

var causeText = map[store.Cause]string{
	store.CausePlugIn: "a car was plugged in", store.CauseIntent: "the user's wish changed", store.CauseTariff: "the tariff changed",
	store.CauseChargeNow: "charging now was asked for or taken back", store.CauseMarket: "prices moved",
	store.CauseInputs: "readings or settings changed", store.CauseFreed: "control ended",
	store.CauseCaps: "the fleet was planned together, under its caps", store.CauseCalled: "the grid instructed the fleet, or no more",
}

var callbackText = map[flex.CallbackStatus]string{
	flex.Received: "has reached it", flex.Accepted: "was accepted", flex.Executed: "was carried out",
	flex.Rejected: "was rejected by the charger", flex.Failed: "could not be carried out",
}

func scheduleText(s *store.Schedule) string {
	return fmt.Sprintf("Schedule %d was made because %s: it charges %s.", s.Generation, causeText[s.Cause],
		hours(limits(s, flex.Span{From: s.Steps[0].From, To: s.End()})))
}

// pushLine says what became of a schedule's push. Its place on the asset's time line is the
// schedule's, for attempts run by the true clock.
func (p *past) pushLine(s *store.Schedule, d store.Delivery) storyLine {
	late := max(0, d.Last.At.Add(d.Last.Took).Sub(d.QueuedAt))
	l := storyLine{At: s.MadeAt.Add(late), Kind: "push", Path: "/console/deliveries/" + d.ID.String()}

	switch d.State {
	case store.Delivered:
		l.Text = fmt.Sprintf("The client took schedule %d, %s after it was made", s.Generation, duration(late))
		if d.Tries > 1 {
			l.Text += fmt.Sprintf(", at attempt %d", d.Tries)
		}
	case store.Pending:
		l.Text = fmt.Sprintf("Schedule %d waits to be sent", s.Generation)
		if d.Tries > 0 {
			l.Text = fmt.Sprintf("The client has not taken schedule %d after %s: %s", s.Generation, count(d.Tries, "attempt"), answerText(d.Last))
		}
	case store.Refused:
		l.Text = fmt.Sprintf("The client refused schedule %d: %s", s.Generation, answerText(d.Last))
	case store.Superseded:
		l.Text = fmt.Sprintf("Schedule %d was not taken before a newer one took its place", s.Generation)
	case store.Lapsed:
		l.Text = fmt.Sprintf("Schedule %d was over before the client took it", s.Generation)
	case store.Retracted:
		l.Text = fmt.Sprintf("Schedule %d was taken back before the client took it", s.Generation)
	}

	if d.Callback != "" {
		l.Text += "; it reported " + strings.ToLower(string(d.Callback))
	}

	l.Text = sentence(l.Text)
	return l
}

func answerText(a store.Attempt) string {
	if a.Status == 0 {
		return "no answer, " + a.Error
	}
	return fmt.Sprintf("it answered %d", a.Status)
}

// sentences say how the asset stands now.
func (p *past) sentences() (said []string) {
	c := &p.charging
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }

	switch s := c.Session; {
	case !p.asset.Type.Charges():
		return nil
	case s.Number == 0:
		say("Nothing was ever plugged in here.")
		return said
	case !c.Open():
		say("Nothing is plugged in: the last car left %s.", whenText(s.PluggedOutAt))
		return append(said, p.took()...)
	case c.Standing.Generation == 0:
		say("A car has been plugged in since %s.", whenText(s.PluggedInAt))
		if !c.Controlled {
			say("Its site is not under control, so the charger is not controlled.")
		}
		return said
	}

	e := &c.Standing.From
	say("A car has been plugged in since %s and needs %s by %s.", whenText(c.Session.PluggedInAt), kwh(e.Need), whenText(e.ReadyBy))

	ahead := limits(&c.Standing, flex.Span{From: p.now, To: c.Standing.End()})
	switch charging := len(ahead) > 0 && ahead[0].value > 0; {
	case !e.ReadyBy.After(p.now) && len(ahead) == 0:
		say("Ready-by has passed; the charger is free.")
	case charging:
		say("It is charging now, and charges %s.", hours(ahead))
	case hours(ahead) == "not at all":
		say("Nothing more is needed, so it does not charge before then.")
	default:
		say("It does not charge now, and charges %s.", hours(ahead))
	}

	if p.accepted < c.Standing.Generation {
		say("The client has not taken this schedule yet.")
	}

	return append(said, p.took()...)
}

// What a car draws of what it is allowed says whether the schedule or something after it kept
// it from charging: below the part, where the energy is enough to tell.
const (
	tookPart   = 0.5
	tookEnergy = 0.5 // kWh
)

// took says what the last session's schedules allowed and what was metered of it, as far as
// there are readings.
func (p *past) took() (said []string) {
	s := p.charging.Session
	within := flex.Span{From: s.PluggedInAt, To: p.now}

	if !s.PluggedOutAt.IsZero() {
		within.To = s.PluggedOutAt
	}

	var last time.Time
	metered := 0.0

	for _, l := range p.actual() { // the half-hour of the plug-in is the session's as a whole
		if !l.Meet(within).Empty() {
			last, metered = l.To, metered+l.value*l.Len().Hours()
		}
	}

	if last.IsZero() {
		return nil
	}

	within.To = slices.MinFunc([]time.Time{within.To, last}, time.Time.Compare)
	allowed := 0.0

	for _, l := range p.planned() {
		if part := l.Meet(within); !part.Empty() {
			allowed += l.value * part.Len().Hours()
		}
	}

	said = append(said, fmt.Sprintf("Until %s its schedules allowed %s kWh, and %s kWh were metered.", clockText(within.To), decimals(allowed, 1), decimals(metered, 1)))
	if allowed >= tookEnergy && metered < tookPart*allowed {
		said = append(said, "So it was not the schedule that kept it from charging: look at the car, the charger, and what the client reported.")
	}

	return said
}
