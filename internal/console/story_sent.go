package console

import (
	"fmt"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// sentLines lists what was sent to an asset without sessions: a battery's dispatches or the
// plan of a tank or a heat pump, with the states of their pushes.
func sentLines(p *control.Past) []storyLine {
	var lines []storyLine
	for i, o := range p.Dispatches {
		lines = append(lines, storyLine{
			At:   o.IssuedAt,
			Kind: "schedule",
			Text: orderText(&o) + replacedText(p.Dispatches, i),
		})
	}

	if p.HeatPlan > 0 && p.Span.Contains(p.HeatMade) {
		lines = append(lines, storyLine{
			At:   p.HeatMade,
			Kind: "schedule",
			Text: fmt.Sprintf(
				"Schedule %d was made: it draws power %s.",
				p.HeatPlan,
				hours(p.Heat),
			),
		})
	}

	for i := range p.Sent {
		lines = append(lines, sentLine(&p.Sent[i]))
	}

	return lines
}

// orderText describes a dispatch of a battery.
func orderText(o *control.PastDispatch) string {
	does := "to draw " + kw(o.Power)
	if o.Power < 0 {
		does = "to give " + kw(-o.Power)
	} else if o.Power == 0 {
		does = "to do nothing"
	}

	text := fmt.Sprintf(
		"A dispatch asked it %s from %s to %s.",
		does,
		clockText(o.From),
		clockText(o.To),
	)
	if o.NotFollowed {
		text += " It does not follow that: it goes on by its own plan."
	}

	return text
}

// replacedText describes since when a newer dispatch replaces one.
func replacedText(all []control.PastDispatch, i int) string {
	var from time.Time
	for _, o := range all {
		overlap := o.Meet(all[i].Span)
		if overlap.Empty() || o.NotFollowed || !o.IssuedAt.After(all[i].IssuedAt) {
			continue
		}

		if from.IsZero() || overlap.From.Before(from) {
			from = overlap.From
		}
	}

	if from.IsZero() {
		return ""
	}

	return " A newer one replaced it from " + clockText(from) + "."
}

// sentLine describes the state of a push to an asset without sessions.
func sentLine(d *control.PastPush) storyLine {
	name := fmt.Sprintf("schedule %d", d.Generation)
	if d.OfDispatch {
		name = "the dispatch"
	}

	text := ""
	switch d.State {
	case flex.DeliveryAccepted:
		text = "The client accepted " + name
	case flex.DeliveryPending:
		text = "The client has not accepted " + name + " yet"
	case flex.DeliveryRejected:
		text = "The client refused " + name

	case flex.DeliverySuperseded:
		text = name + " was not accepted before a newer one replaced it"
	case flex.DeliveryExpired:
		text = name + " was over before the client took it"
	default:
		text = name + " was taken back before the client took it"
	}

	return storyLine{
		At:   d.At,
		Kind: "push",
		Path: "/console/deliveries/" + d.ID.String(),
		Text: sentence(text),
	}
}
