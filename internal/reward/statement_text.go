package reward

import (
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// eventText describes the result of a flex event, and the baseline it is compared with.
func eventText(r *settle.Result, span flex.Span) string {
	direction := "less"
	if r.Flex > 0 {
		direction = "more"
	}

	usual := "usual is what the plan without flexibility would have used"
	if r.Method != settle.Nominated {
		usual = fmt.Sprintf(
			"usual is what was used at the same time on %d similar days before",
			len(r.Used),
		)
	}

	if r.Quality == settle.Insufficient {
		usual = fewDaysText(len(r.Used))
	}

	return fmt.Sprintf(
		"%s kWh %s than usual, %s; %s",
		kwhText(max(r.Flex, -r.Flex)),
		direction,
		spanText(span),
		usual,
	)
}

// fewDaysText says that a baseline has too few days for a payment.
func fewDaysText(days int) string {
	switch days {
	case 0:
		return "there is no similar day before to compare with, so that nothing is paid for it"
	case 1:
		return "there is only 1 similar day before to compare with, too few to be paid for"
	}

	return fmt.Sprintf(
		"there are only %d similar days before to compare with, too few to be paid for",
		days,
	)
}

// eventWorking describes the steps of the calculation of a line about a flex event.
func (c *Calculation) eventWorking(amount flex.Pence) []string {
	value := "It was worth " + PenceText(c.Worth) +
		": the kWh of each half-hour times its price"
	if c.Worth < 0 {
		value = "It cost " + PenceText(-c.Worth) +
			": the kWh of each half-hour times its price"
	}

	var steps []string
	steps = append(steps, value+".")
	if c.Carried != 0 {
		steps = append(
			steps,
			"It is rounded together with events at the same time and meter before it, which were worth "+
				PenceText(c.Carried)+".",
		)
	}

	parts := []string{"your share of " + percentText(c.Share)}
	if c.LossFactor != settle.Whole {
		parts = append(parts, "the loss factor of "+factorText(c.LossFactor))
	}

	if c.PaidEarly != settle.Whole && c.Due >= 0 {
		parts = append(
			parts,
			percentText(c.PaidEarly)+" of it now, the rest when it is final",
		)
	}

	steps = append(
		steps,
		fmt.Sprintf(
			"By %s that is %d p for you, in whole pence.",
			strings.Join(parts, ", "),
			c.Due,
		),
	)

	if c.Others != nil {
		steps = append(steps, c.monthWorking())
	}

	if c.Earlier != 0 {
		steps = append(
			steps,
			fmt.Sprintf("You were credited %d p for it before.", c.Earlier),
		)
	}

	return append(steps, fmt.Sprintf("So this line is %d p.", amount))
}

// monthWorking describes how an event is netted with the others of its month.
func (c *Calculation) monthWorking() string {
	n := c.Others
	text := fmt.Sprintf(
		"With the other events of %s, which come to %d p, the month comes to %d p",
		monthName(c.Month),
		n.Share,
		c.Sum(),
	)

	if n.Carried != 0 {
		text = fmt.Sprintf(
			"With the other events of %s, which come to %d p, and %d p carried into it, the month comes to %d p",
			monthName(c.Month),
			n.Share,
			n.Carried,
			c.Sum(),
		)
	}

	switch {
	case n.Certainty == 0 && c.Sum() < 0:
		text += "; below nothing it counts as nothing, and takes nothing from you"

	case n.Certainty == 0:
	case c.MonthCredit() > 0:
		text += fmt.Sprintf(
			". That is above %s, %s standard errors of what is usual, and is credited",
			c.Threshold(),
			factorText(n.Certainty),
		)

	default:
		text += fmt.Sprintf(
			". That is not above %s, %s standard errors of what is usual, and is carried on in place of being credited",
			c.Threshold(),
			factorText(n.Certainty),
		)
	}

	if n.Later != 0 {
		text += fmt.Sprintf(
			". It changes what later months are credited by %d p",
			n.Later,
		)
	}

	return fmt.Sprintf(
		"%s. For the others you were credited %d p.",
		text,
		n.Credited,
	)
}

// sessionWorking describes the steps of the calculation of a line about a plug session.
func (c *Calculation) sessionWorking(
	energy flex.WattHours,
	amount flex.Pence,
) []string {
	total := c.Counted + energy
	exact := fmt.Sprintf(
		"%s kWh times %s p is %d p, in whole pence.",
		kwhText(total),
		rateText(c.Rate),
		c.Due,
	)

	if c.Counted == 0 && c.Earlier == 0 {
		return []string{exact}
	}

	return []string{
		fmt.Sprintf(
			"The session charged %s kWh in all, of which %s kWh were counted before.",
			kwhText(total),
			kwhText(c.Counted),
		),
		exact,
		fmt.Sprintf("You were credited %d p before, so this line is %d p.", c.Earlier, amount),
	}
}

func kwhText(e flex.WattHours) string {
	return strconv.FormatFloat(e.KWh(), 'f', -1, 64)
}

func rateText(r settle.Rate) string {
	return strconv.FormatFloat(r.PencePerKWh(), 'f', -1, 64)
}

// PenceText writes an exact amount in pence.
func PenceText(p settle.PicoPounds) string {
	return decimalText(int64(p), 10) + " p"
}

// PriceText writes a price in pence per kilowatt-hour.
func PriceText(p *flex.Price) string {
	if p == nil {
		return "–"
	}
	return decimalText(int64(*p), 7)
}

// percentText writes a fraction as percent.
func percentText(p settle.Parts) string { return decimalText(int64(p), 4) + " %" }

func factorText(p settle.Parts) string { return decimalText(int64(p), 6) }

// decimalText writes n times 10 to the power of -places exactly, without trailing zeros.
func decimalText(n int64, places int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}

	digits := fmt.Sprintf("%0*d", places+1, n)
	integer, fraction := digits[:len(digits)-places], strings.TrimRight(digits[len(digits)-places:], "0")
	if fraction == "" {
		return sign + integer
	}

	return sign + integer + "." + fraction
}

// spanText writes a span in the site's local time.
func spanText(s flex.Span) string {
	if flex.DayAt(s.From) == flex.DayAt(s.To.Add(-1)) {
		return flex.Clock(s.From, flex.London, "2 January, 15:04") + " to " +
			flex.Clock(s.To, flex.London, "15:04")
	}

	return flex.Clock(s.From, flex.London, "2 January 15:04") + " to " +
		flex.Clock(s.To, flex.London, "2 January 15:04")
}
