package console

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// Times are shown in London time, with the exact instant as an attribute.

// when is an instant to the minute, as an element that says it exactly.
func when(at time.Time) template.HTML {
	return timeElement(at, "Mon 2 Jan, 15:04")
}

// stamp is an instant to the second.
func stamp(at time.Time) template.HTML {
	return timeElement(at, "Mon 2 Jan, 15:04:05")
}

// clock is the time of day alone.
func clock(at time.Time) template.HTML { return timeElement(at, "15:04") }

func timeElement(at time.Time, layout string) template.HTML {
	if at.IsZero() {
		return `<span class="none">never</span>`
	}
	exact := at.UTC().Format(time.RFC3339)
	local := at.In(flex.London)

	return template.HTML(`<time datetime="` + exact + `" title="` + local.Format("Monday 2 January 2006, 15:04:05 MST") + `">` +
		flex.Clock(at, flex.London, layout) + `</time>`)
}

// whenText is an instant to the minute, in plain text.
func whenText(at time.Time) string {
	return flex.Clock(at, flex.London, "Mon 2 Jan, 15:04")
}

// clockText is the time of day in plain text.
func clockText(at time.Time) string {
	return flex.Clock(at, flex.London, "15:04")
}

// day is a date, in the words of a heading.
func day(at time.Time) string {
	return at.In(flex.London).Format("Monday 2 January 2006")
}

// date is a day in a table, or nothing for none.
func date(d flex.Day) string {
	if d == (flex.Day{}) {
		return ""
	}

	return d.Start().In(flex.London).Format("Mon 2 Jan 2006")
}

// month is a month that is written YYYY-MM, in words.
func month(text string) string {
	m, err := ledger.ParseMonth(text)
	if err != nil {
		return text
	}

	return fmt.Sprintf("%s %d", m.Month, m.Year)
}

// ago says approximately how long before now an instant was.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}

	d := now.Sub(at)
	if d < 0 {
		return "in " + duration(-d)
	}
	if d < time.Second {
		return "now"
	}

	return duration(d) + " ago"
}

// duration is a length of time in its two largest units at most.
func duration(d time.Duration) string {
	switch d = d.Abs(); {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return "< 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))

	case d < time.Hour:
		return joinUnits(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return joinUnits(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}

	return joinUnits(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func joinUnits(n int, unit string, m int, smallUnit string) string {
	if m == 0 {
		return fmt.Sprintf("%d %s", n, unit)
	}
	return fmt.Sprintf("%d %s %d %s", n, unit, m, smallUnit)
}

// megawatt is from where on a power is written in MW.
const megawatt flex.Watts = 1_000_000

// kw is a power, or a dash where none is known.
func kw(v any) string {
	switch w := v.(type) {
	case flex.Watts:
		if w >= megawatt || w <= -megawatt {
			return decimals(w.KW()/1000, 2) + " MW"
		}
		return decimals(w.KW(), 1) + " kW"
	case *flex.Watts:
		if w != nil {
			return kw(*w)
		}
	}

	return "–"
}

// kwh is an energy, or a dash where none is known.
func kwh(v any) string {
	switch e := v.(type) {
	case flex.WattHours:
		return decimals(e.KWh(), 1) + " kWh"
	case *flex.WattHours:
		if e != nil {
			return kwh(*e)
		}
	}

	return "–"
}

// price is a market price in pounds per megawatt-hour.
func price(p flex.Price) string { return p.Pounds() + "/MWh" }

func barePrice(p flex.Price) string { return p.Pounds() }

// pounds is an amount of money in pounds and pence, or finer where it is small.
func pounds(v any) string {
	switch m := v.(type) {
	case flex.Pence:
		return sterling(m)
	case flex.MicroPounds:
		if m > -1e6 && m < 1e6 {
			return decimals(float64(m)/1e4, 1) + "\u00a0p"
		}

		return sterling(m.Pence())
	}

	return "–"
}

// pence is an amount of money that was worked out in pence.
func pence(p float64) string { return pounds(flex.MicroPounds(math.Round(p * 1e4))) }

// sterling writes an amount of money in pounds, with its thousands apart.
func sterling(p flex.Pence) string {
	sign := ""
	if p < 0 {
		sign, p = "−", -p
	}

	return fmt.Sprintf("%s£%s.%02d", sign, decimals(float64(p/100), 0), p%100)
}

// decimals writes a number with at most n decimals and thousands apart.
func decimals(v float64, n int) string {
	text := strconv.FormatFloat(v, 'f', n, 64)
	integer, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	sign := ""

	if strings.HasPrefix(integer, "-") {
		sign, integer = "−", integer[1:]
	}

	for i := len(integer) - 3; i > 0; i -= 3 {
		integer = integer[:i] + "\u202f" + integer[i:]
	}

	if fraction != "" {
		integer += "." + fraction
	}

	if integer == "0" {
		sign = ""
	}

	return sign + integer
}

// round cuts a number to n decimals.
func round(v float64, n int) float64 {
	p := math.Pow10(n)
	return math.Round(v*p) / p
}

// count is a number of things: "1 car", "1 200 cars".
func count(n any, thing string) string {
	v, _ := strconv.ParseInt(fmt.Sprint(n), 10, 64)
	switch {
	case v == 1:
	case strings.HasSuffix(thing, "sh"), strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}

	return decimals(float64(v), 0) + "\u00a0" + thing
}

// sentence makes a text begin with a capital letter and end with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}

	text = capital(text)
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}

	return text
}

// capital writes a text as the beginning of a heading. A name of the interface stays as it is.
func capital(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if strings.Contains(first, "_") {
		return text
	}

	r, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return ""
	}

	return string(unicode.ToUpper(r)) + text[n:]
}

// words writes a word of the interface as people read it: "charge_now" is "charge now".
func words(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") }

// short returns the end of an id, which distinguishes it from similar ones.
func short(id fmt.Stringer) string {
	text := id.String()
	return "…" + text[max(0, len(text)-8):]
}

// signedPounds is a difference in pounds, with its sign.
func signedPounds(v float64) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', 2, 64)
	if text == "0.00" {
		return "£0.00"
	}

	if v < 0 {
		return "−£" + text
	}

	return "+£" + text
}
