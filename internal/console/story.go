package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// storyMax is the most lines of an asset's history on its page.
const storyMax = 200

// history is the text on an asset's page: its state, and its events.
type history struct {
	Sentences []string
	Story     []storyLine // the newest first
	StoryMore bool        // whether older ones are left out
}

func historyOf(p *control.Past) history {
	h := history{
		Sentences: sentencesOf(p),
		Story:     storyOf(p),
	}

	slices.Reverse(h.Story)

	h.StoryMore = len(h.Story) > storyMax
	if h.StoryMore {
		h.Story = h.Story[:storyMax]
	}

	return h
}

// storyLine is an event in plain words.
type storyLine struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // event, schedule, push, callback
	Text string    `json:"text"`
	// of a page that says more, "" if there is none
	Path string `json:"path,omitempty"`
}

// storyOf lists the events of an asset in the span, in order of time.
func storyOf(p *control.Past) []storyLine {
	var lines []storyLine
	for _, t := range p.Events {
		lines = append(lines, storyLine{
			At:   t.At,
			Kind: "event",
			Text: eventText(t),
		})
	}

	generation := map[flex.EventID]int64{}
	for _, s := range p.Schedules {
		generation[s.EventID] = s.Generation
		lines = append(lines, storyLine{
			At:   s.MadeAt,
			Kind: "schedule",
			Text: scheduleText(&s),
		})

		if s.Push != nil {
			lines = append(lines, pushLine(&s))
		}
	}

	for _, c := range p.Callbacks {
		lines = append(
			lines,
			storyLine{
				At:   c.ReceivedAt,
				Kind: "callback",
				Path: "/console/deliveries/" + c.EventID.String(),
				Text: fmt.Sprintf(
					"The client reported that schedule %d %s.",
					generation[c.EventID],
					callbackText[c.Status],
				),
			},
		)
	}

	for i := range p.Deadlines {
		lines = append(lines, storyLine{
			At:   p.Deadlines[i].EndedAt(),
			Kind: "schedule",
			Text: p.Deadlines[i].Text(),
		})
	}

	lines = append(lines, sentLines(p)...)

	slices.SortStableFunc(lines, func(a, b storyLine) int {
		return a.At.Compare(b.At)
	})

	return lines
}

// eventText describes an event.
func eventText(t control.PastEvent) string {
	event := t.What
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
		b.WriteString("Charging now was asked for, until " +
			whenText(event.EndAt))

	case control.ChargeNowDeleted:
		b.WriteString("Charging now was taken back")

	case control.Away:
		b.WriteString("Nothing is to be charged until " + whenText(event.EndAt) +
			": a night was skipped, or the household is away")

	case control.AwayEnded:
		b.WriteString("A skipped night or an absence was ended")

	case "plug_in_schedule":
		b.WriteString("The client sent its own schedule" + t.PauseText())

	default:
		b.WriteString(words(t.Kind))
	}

	if event.VehicleRate > 0 {
		b.WriteString(" that takes " + kw(event.VehicleRate))
	}

	if in := event.Intent; in != nil {
		fmt.Fprintf(&b, ": %s by %s", kwh(in.Need), readyText(in))

		if in.MayChargePeak {
			b.WriteString(", at peak times too if need be")
		}

		if in.Mode == flex.Maximise {
			b.WriteString(", and as much as off-peak hours hold")
		}
	}

	if event.Tariff != nil {
		b.WriteString("; " + offPeakText(event.Tariff))
		if event.Tariff.Zone != flex.London.String() {
			b.WriteString(" in " + event.Tariff.Zone)
		}
	}

	return sentence(b.String())
}

// offPeakText describes the off-peak hours of a tariff; a dynamic one has none.
func offPeakText(t *flex.Tariff) string {
	if t.OffPeak == "" {
		return "no off-peak hours"
	}

	return "off-peak " + t.OffPeak
}

func readyText(in *flex.Intent) string {
	if in.ReadyByLocal != nil {
		return in.ReadyByLocal.String()[:len("07:00")]
	}
	return in.ReadyBy.In(time.FixedZone(
		"",
		int(in.ReadyByOffset/time.Second),
	)).Format("15:04")
}

var callbackText = map[flex.CallbackStatus]string{
	flex.Received: "has reached it",
	flex.Accepted: "was accepted",
	flex.Executed: "was carried out",
	flex.Rejected: "was rejected by the charger",
	flex.Failed:   "could not be carried out",
}

func scheduleText(s *control.PastSchedule) string {
	return fmt.Sprintf(
		"Schedule %d was made because %s: it charges %s.",
		s.Generation,
		control.CauseText(s.Cause),
		hours(s.Draws(s.Whole())),
	)
}

// pushLine describes the push of a schedule and its state. Attempts are timed by the real
// clock, so the line is placed at the time of the schedule plus the time that the push took.
func pushLine(s *control.PastSchedule) storyLine {
	d := s.Push
	late := max(0, d.Last.At.Add(d.Last.Took).Sub(d.QueuedAt))
	text := pushText(s, late)
	if d.Callback != "" {
		text += "; it reported " + strings.ToLower(string(d.Callback))
	}

	return storyLine{
		At:   s.MadeAt.Add(late),
		Kind: "push",
		Path: "/console/deliveries/" + d.ID.String(),
		Text: sentence(text),
	}
}

// pushText describes the state of a schedule's push. late is the time from the schedule until
// the push ended.
func pushText(s *control.PastSchedule, late time.Duration) string {
	d := s.Push
	switch {
	case d.State == flex.DeliveryAccepted && d.Tries > 1:
		return fmt.Sprintf(
			"The client accepted schedule %d, %s after it was made, at attempt %d",
			s.Generation,
			duration(late),
			d.Tries,
		)

	case d.State == flex.DeliveryAccepted:
		return fmt.Sprintf(
			"The client accepted schedule %d, %s after it was made",
			s.Generation,
			duration(late),
		)

	case d.State == flex.DeliveryPending && d.Tries > 0:
		return fmt.Sprintf(
			"The client has not accepted schedule %d after %s: %s",
			s.Generation,
			count(d.Tries, "attempt"),
			answerText(s),
		)

	case d.State == flex.DeliveryPending:
		return fmt.Sprintf("Schedule %d waits to be sent", s.Generation)

	case d.State == flex.DeliveryRejected:
		return fmt.Sprintf(
			"The client refused schedule %d: %s",
			s.Generation,
			answerText(s),
		)

	case d.State == flex.DeliverySuperseded:
		return fmt.Sprintf(
			"Schedule %d was not accepted before a newer one replaced it",
			s.Generation,
		)

	case d.State == flex.DeliveryExpired:
		return fmt.Sprintf(
			"Schedule %d was over before the client took it",
			s.Generation,
		)

	case d.State == flex.DeliveryRetracted:
		return fmt.Sprintf(
			"Schedule %d was taken back before the client took it",
			s.Generation,
		)
	}

	return ""
}

// answerText describes the client's response to the latest attempt.
func answerText(s *control.PastSchedule) string {
	last := s.Push.Last
	if last.Status == 0 {
		return "no answer, " + last.Error
	}

	return fmt.Sprintf("it answered %d", last.Status)
}

// endedText describes the end of the last session of an asset.
func endedText(p *control.Past) string {
	ended := whenText(p.Charging.Session.PluggedOutAt)
	if p.Freed {
		return "Control ended " + ended +
			", and no plug-out came since: as far as is known, a car is still plugged in, and draws what it likes."
	}

	return "Nothing is plugged in: the last car left " + ended + "."
}

// sentencesOf describes the present state of the asset.
func sentencesOf(p *control.Past) []string {
	c := &p.Charging
	var sentences []string
	add := func(format string, args ...any) {
		sentences = append(sentences, fmt.Sprintf(format, args...))
	}

	switch s := c.Session; {
	case !p.Asset.Type.Charges():
		return nil

	case s.Number == 0 && plannedByClient(p) != nil:
		add(
			"Its client plans it. The newest schedule came %s%s.",
			whenText(plannedByClient(p).At),
			plannedByClient(p).PauseText(),
		)

		return sentences

	case s.Number == 0:
		add("Nothing was ever plugged in here.")
		return sentences

	case !c.Open():
		return append([]string{endedText(p)}, tookText(p)...)

	case c.Current.Generation == 0:
		add("A car has been plugged in since %s.", whenText(s.PluggedInAt))
		if !c.Excluded.IsZero() {
			add("It is excluded from control since %s.", whenText(c.Excluded))
		} else if !c.Controlled {
			add("Its site is not under control, so the charger is not controlled.")
		}

		return sentences
	}

	e := &c.Current.From
	add(
		"A car has been plugged in since %s and needs %s by %s.",
		whenText(c.Session.PluggedInAt),
		kwh(e.Need),
		whenText(e.ReadyBy),
	)

	sentences = append(sentences, aheadText(p))
	if level, known := p.Level.AtLast(); known && e.ReadyBy.After(p.Now) {
		add("Its battery is expected to be %s\u00a0%% full at ready-by.", decimals(level, 0))
	}

	if p.Accepted < c.Current.Generation {
		add("The client has not accepted this schedule yet.")
	}

	return append(sentences, tookText(p)...)
}

// plannedByClient returns the newest event in which the client sent its own schedule; nil if
// there is none.
func plannedByClient(p *control.Past) *control.PastEvent {
	for i := len(p.Events) - 1; i >= 0; i-- {
		if p.Events[i].Kind == "plug_in_schedule" {
			return &p.Events[i]
		}
	}

	return nil
}

// aheadText describes the rest of the schedule in force.
func aheadText(p *control.Past) string {
	ahead := p.Ahead()
	switch charging := len(ahead) > 0 && ahead[0].KW > 0; {
	case !p.Charging.Current.From.ReadyBy.After(p.Now) && len(ahead) == 0:
		return "Ready-by has passed; the charger is free."

	case charging:
		return fmt.Sprintf("It is charging now, and charges %s.", hours(ahead))

	case hours(ahead) == "not at all":
		return "Nothing more is needed, so it does not charge before then."

	default:
		return fmt.Sprintf(
			"It does not charge now, and charges %s.",
			hours(ahead),
		)
	}
}

// tookText compares the energy that the last session's schedules allowed with what was
// metered, as far as there are readings.
func tookText(p *control.Past) []string {
	t := p.Took()
	if t.Until.IsZero() {
		return nil
	}

	var parts []string
	parts = append(
		parts,
		fmt.Sprintf(
			"Until %s its schedules allowed %s kWh, and %s kWh were metered.",
			clockText(t.Until),
			decimals(t.Allowed, 1),
			decimals(t.Metered, 1),
		),
	)

	if t.Less {
		parts = append(
			parts,
			"So it was not the schedule that kept it from charging: look at the car, the charger, and what the client reported.",
		)
	}

	if outcome := outcomeText(p); outcome != "" {
		parts = append(parts, outcome)
	}

	return parts
}

// outcomeText says whether a session that has ended got the energy that it needed, by its
// readings. It is empty if there are none.
func outcomeText(p *control.Past) string {
	o, known := p.Outcome()
	if !known {
		return ""
	}

	need, metered := decimals(o.Need, 1), decimals(o.Metered, 1)
	switch more := o.Metered - o.Need; {
	case need == metered:
		return fmt.Sprintf("The need of %s kWh was met.", need)

	case more > 0:
		return fmt.Sprintf(
			"The need of %s kWh was met, with %s kWh more.",
			need,
			decimals(more, 1),
		)

	default:
		return fmt.Sprintf(
			"Of the %s kWh needed %s kWh were missing.",
			need,
			decimals(-more, 1),
		)
	}
}
