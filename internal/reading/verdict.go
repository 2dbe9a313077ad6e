package reading

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// The limits of a reading.
const (
	// MaxAhead is how far a reading's end may be in the future, for clocks that are ahead.
	MaxAhead = 5 * time.Minute
	// MaxAge is how old a reading may be: as old as the last settlement run of its month can
	// use.
	MaxAge = 400 * 24 * time.Hour
	// MaxLength is the longest time that one reading may span.
	MaxLength = 24 * time.Hour
)

// Input is a reading as a client sent it, its value in the label's unit.
type Input struct {
	AssetID flex.AssetID
	flex.Span
	Label flex.Label
	Value float64
}

// Verdict is why a reading was refused, as text for the client; it is empty for one that was
// accepted.
type Verdict string

// Accepted reports whether the reading was accepted.
func (v Verdict) Accepted() bool { return v == "" }

// kind says how a label's values relate to time.
type kind uint8

const (
	level    kind = iota // a power or a state, at an instant or over a time
	energy               // an energy over a time
	halfHour             // an energy over exactly one settlement period
	// a register that never falls, read at the reading's end
	register
)

// rule has the requirements of a label's readings.
type rule struct {
	kind kind
	unit string
	min  float64
	max  float64
}

// The bounds of a value, far above those of any site: beyond them the unit must be wrong.
const (
	maxPower    = 100_000       // kW
	maxEnergy   = 50_000        // kWh in one reading
	maxRegister = 1_000_000_000 // kWh
)

var rules = map[flex.Label]rule{
	flex.BoundaryImportPower:    {level, "kW", -maxPower, maxPower},
	flex.BatteryInverterPower:   {level, "kW", -maxPower, maxPower},
	flex.ChargerEnergy:          {halfHour, "kWh", 0, maxEnergy},
	flex.ChargerRegister:        {register, "kWh", 0, maxRegister},
	flex.BoundaryImportRegister: {register, "kWh", 0, maxRegister},
	flex.BoundaryExportRegister: {register, "kWh", 0, maxRegister},
	flex.ProvisionalConsumption: {energy, "kWh", 0, maxEnergy},
	flex.SolarPower:             {level, "kW", 0, maxPower},
	flex.BatteryStateOfCharge:   {level, "%", 0, 100},
	flex.BatteryStoredEnergy:    {level, "kWh", 0, maxEnergy},
	flex.RoomTemperature:        {level, "°C", -20, 60},
	flex.TankTemperature:        {level, "°C", 0, 100},
	flex.OutdoorTemperature:     {level, "°C", -50, 60},
	flex.HeatPower:              {level, "kW", 0, maxPower},
}

// Register reports whether the label is a register.
func Register(l flex.Label) bool { return l.Register() }

// Judge checks a reading by itself at the instant now, and returns it as it is stored. Its
// asset, and the register's other readings, are checked elsewhere.
func Judge(g Input, now time.Time) (flex.Reading, Verdict) {
	r, known := rules[g.Label]
	if !known {
		return flex.Reading{}, refuse(
			"label %q is not one of the interface's, such as %s",
			g.Label,
			flex.ChargerEnergy,
		)
	}

	if v := r.judgeTime(g, now); v != "" {
		return flex.Reading{}, v
	}

	if v := r.judgeValue(g); v != "" {
		return flex.Reading{}, v
	}

	return flex.Reading{
		AssetID: g.AssetID,
		Span:    g.Span,
		Label:   g.Label,
		Value:   flex.Micro(math.Round(g.Value * 1e6)),
	}, ""
}

func (r rule) judgeTime(g Input, now time.Time) Verdict {
	length := g.To.Sub(g.From)
	switch {
	case length < 0:
		return refuse(
			"end_timestamp %s is before start_timestamp %s",
			stamp(g.To),
			stamp(g.From),
		)

	case length > MaxLength:
		return refuse(
			"the reading spans %s; a reading spans at most %s",
			flex.Lasting(length),
			flex.Lasting(MaxLength),
		)

	case g.To.After(now.Add(MaxAhead)):
		return refuse(
			"end_timestamp %s is in the future: it is %s, and at most %s ahead is taken",
			stamp(g.To),
			stamp(now),
			flex.Lasting(MaxAhead),
		)

	case g.From.Before(now.Add(-MaxAge)):
		return refuse(
			"start_timestamp %s is too long ago: readings are taken for %d days",
			stamp(g.From),
			MaxAge/(24*time.Hour),
		)

	case r.kind == halfHour && !(length == flex.HalfHour && g.From.Equal(flex.PeriodAt(g.From).Start())):
		return refuse("%s is the energy of one half-hour: from a full or half hour to 30 minutes later, as in 10:00 to 10:30, not %s to %s",
			g.Label, stamp(g.From), stamp(g.To))

	case r.kind == energy && length == 0:
		return refuse(
			"%s is an energy over a time: end_timestamp must be after start_timestamp",
			g.Label,
		)
	}

	return ""
}

func (r rule) judgeValue(g Input) Verdict {
	if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) {
		return refuse("value is not a number")
	}

	if g.Value < r.min && r.min == 0 {
		return refuse(
			"value %s is below 0: %s counts %s and is never negative",
			number(g.Value),
			g.Label,
			r.unit,
		)
	}

	if g.Value < r.min || g.Value > r.max {
		return refuse("value %s is outside %s to %s %s for %s; check the unit",
			number(g.Value), number(r.min), number(r.max), r.unit, g.Label)
	}

	return ""
}

// Mark is a register as it was read once.
type Mark struct {
	At    time.Time
	Value flex.Micro
}

// JudgeRegister checks a register's reading against the marks before and after it; nil where
// there is none.
func JudgeRegister(r flex.Reading, before, after *Mark) Verdict {
	if before != nil && r.Value < before.Value {
		return refuse(
			"%s fell from %s at %s to %s: a register never falls. If the earlier reading was wrong, send it again with the right value",
			r.Label,
			number(float64(before.Value)/1e6),
			stamp(before.At),
			number(float64(r.Value)/1e6),
		)
	}

	if after != nil && r.Value > after.Value {
		return refuse(
			"%s of %s is above the %s read later, at %s: a register never falls. If the later reading was wrong, send it again with the right value",
			r.Label,
			number(float64(r.Value)/1e6),
			number(float64(after.Value)/1e6),
			stamp(after.At),
		)
	}

	return ""
}

// NotFound is the verdict about a reading of an asset that is not the organisation's, whether
// or not it is another's.
const NotFound Verdict = "asset not found or not authorized"

func refuse(format string, args ...any) Verdict {
	return Verdict(fmt.Sprintf(format, args...))
}

func stamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05Z07:00")
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
