package sim

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// Line is one line of a story: what happens, or what must be so.
type Line struct {
	Number int
	Text   string
	At     time.Time // the story's time when it is played
	Verb   string    // the form that the line has, as in lineForms
	Args   []string  // the words that the form leaves open
}

// lineForms is the language of stories: the forms that a line may have. docs/stories.md
// explains each.
var lineForms = []struct{ verb, form string }{
	{"site", `site (\S+)( in limited_pause)?`},
	{"charger", `charger (\S+) at (\S+) (\S+)kW`},
	{"battery", `battery (\S+) at (\S+) ([\d.]+)kW ([\d.]+)kWh( without a model)?`},
	{"used", `(\S+) used (-?[\d.]+)kW((?: \d\d:\d\d-\d\d:\d\d -?[\d.]+kW)*)`},
	{"roof", `roof of (\S+) gave ([\d.]+)kW((?: \d\d:\d\d-\d\d:\d\d [\d.]+kW)*)`},
	{"roof will", `roof of (\S+) will give ([\d.]+)kW((?: \d\d:\d\d-\d\d:\d\d [\d.]+kW)*)`},
	{"rates", `rates ([\d.]+)p ([\d.]+)p export ([\d.]+)p`},
	{"on the market", `(\S+) is on the market`},
	{"holds", `(\S+) holds (\d+)%`},
	{"runs", `(\S+) runs at (-?[\d.]+)kW`},
	{"reports", `client of (\S+) reports ([A-Z]+)`},
	{"dispatches", `client takes dispatches`},
	{"cap", `cap ([\d.]+)kW((?: \S+)*)`},
	{"export", `export ([\d.]+)kW at (\S+)`},
	{"cheap hours", `(\S+) has cheap hours (\d\d:\d\d)-(\d\d:\d\d)`},
	{"discharges", `(\S+) discharges ([\d.]+)kW of ([\d.]+)kWh`},
	{"heat pump", `heat pump (\S+) at (\S+) ([\d.]+)kW`},
	{"degrees", `(\S+) reads (-?[\d.]+)C (indoors|outdoors)`},
	{"fuse", `fuse ([\d.]+)kW at (\S+)`},
	{"environment", `environment (production|sandbox)`},
	{"prices", `prices (-?[\d.]+)((?: \d\d:\d\d-\d\d:\d\d -?[\d.]+)*)`},
	{"plug in", `(\S+) plugs in(.*)`},
	{"plug out", `(\S+) plugs out`},
	{"intent", `(\S+) wants (.*)`},
	{"tariff", `(\S+) is on tariff (.*)`},
	{"draws", `(\S+) draws at most ([\d.]+)kW`},
	{"charge now", `(\S+) charges now for (\S+)`},
	{"as planned", `(\S+) charges as planned`},
	{"pause", `(\S+) asks for a pause in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"endpoint", `endpoint (down|up)`},
	{"unenrol", `unenrol (\S+)`},
	{"enrol", `enrol (\S+) again`},
	{"delete", `delete (\S+)`},
	{"offboard", `offboard (\S+)`},
	{"instruct", `instruct (less|more|at most) ([\d.]+)kW in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"event", `OpenADR event (less|more|at most) ([\d.]+)kW in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"event gone", `OpenADR event is cancelled`},
	{"product", `product (\S+) asks for less ([\d.]+)kW in (\d\d:\d\d)-(\d\d:\d\d) at (\d+), answers by (\d\d:\d\d)`},
	{"charged before", `(\S+) drew ([\d.]+)kW in (\d\d:\d\d)-(\d\d:\d\d) of the (\d+) days before`},
	{"share", `households have (\d+)% of what flexibility earns`},
	{"accepts", `household of (\S+) (accepts|refuses) (\S+)`},
	{"limit", `feeder is limited to ([\d.]+)kW in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"fallback", `feeder falls back to ([\d.]+)kW after (\S+)`},
	{"feeder heartbeat", `feeder sends a heartbeat`},
	{"stop", `stop all instructions`},
	{"expect push", `expect push (\S+)`},
	{"expect no push", `expect no push`},
	{"expect pushes", `expect at most (\d+) push(?:es)? for (\S+)`},
	{"expect charged", `expect (\S+) charged (>=|<=|==) ([\d.]+)kWh`},
	{"expect gave", `expect (\S+) gave (>=|<=) ([\d.]+)kWh`},
	{"expect peak", `expect (\S+) charged ([\d.]+)kWh outside (.*)`},
	{"expect open", `expect (\S+) open in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"expect shut", `expect (\S+) shut in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"expect drew", `expect fleet drew (<=|>=) ([\d.]+)kW`},
	{"expect envelope", `expect fleet (can|must) draw ([\d.]+)kWh in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"expect instructed", `expect instruction to reach (\d+)%`},
	{"expect report", `expect OpenADR report (\S+), ([\d.]+)kWh less metered`},
	{"expect invited", `expect (\S+) invited to (\S+)`},
	{"expect product", `expect product (\S+) (\S+), ([\d.]+)kWh less for ([\d.]+) pounds`},
	{"expect free", `expect (\S+) free`},
	{"expect paused", `expect paused (\d\d:\d\d)-(\d\d:\d\d)`},
	{"expect unpaused", `expect no pause`},
	{
		"expect action",
		`expect (\S+) (charge_max|discharge_max|avoid_import|avoid_export|deviation) (throughout|sometime in|never in) (\d\d:\d\d)-(\d\d:\d\d)`,
	},
	{
		"expect mode",
		`expect (\S+) (CHARGE|DISCHARGE|LOCK|FEED_IN|SELF_USE) (throughout|sometime in|never in) (\d\d:\d\d)-(\d\d:\d\d)`,
	},
	{"expect answer", `expect (schedule|plan) of (\S+) is (empty|403|404)`},
	{"expect replanned", `expect (\S+) replanned`},
	{"expect not replanned", `expect (\S+) not replanned`},
	{"expect dispatch", `expect dispatch (\S+) to (charge|discharge) in (\d\d:\d\d)-(\d\d:\d\d)`},
	{"expect no dispatch", `expect no dispatch`},
	{"expect release", `expect release of (\S+) is (ahead|unknown|missing|done)`},
	{"expect reward", `expect reward (\S+) (>=|==) (\d+)p`},
}

var lineMatchers = func() map[string]*regexp.Regexp {
	by := map[string]*regexp.Regexp{}
	for _, f := range lineForms {
		by[f.verb] = regexp.MustCompile("^" + f.form + "$")
	}
	return by
}()

// ParseStory reads a story: lines in time order under "at" lines, # begins a comment. An
// error names the line.
func ParseStory(text string) ([]Line, error) {
	var at time.Time
	var lines []Line
	for i, raw := range strings.Split(text, "\n") {
		raw, _, _ = strings.Cut(raw, "#")
		words := strings.Join(strings.Fields(raw), " ")
		if words == "" {
			continue
		}

		if stamp, ok := strings.CutPrefix(words, "at "); ok {
			next, err := time.Parse("2006-01-02T15:04Z07:00", stamp)
			if err != nil {
				return nil, fmt.Errorf(
					"line %d: %q is not a time like 2026-10-24T18:00+01:00",
					i+1,
					stamp,
				)
			}

			if next.Before(at) {
				return nil, fmt.Errorf(
					"line %d: %s is before the time above",
					i+1,
					stamp,
				)
			}

			at = next
			continue
		}

		if at.IsZero() {
			return nil, fmt.Errorf(
				"line %d: a story begins with an at line",
				i+1,
			)
		}

		l, ok := matchLine(words)
		if !ok {
			return nil, fmt.Errorf(
				"line %d: %q is none of the lines that a story may have",
				i+1,
				words,
			)
		}

		l.Number, l.At = i+1, at
		lines = append(lines, l)
	}

	return lines, nil
}

func matchLine(words string) (Line, bool) {
	for _, f := range lineForms {
		if m := lineMatchers[f.verb].FindStringSubmatch(words); m != nil {
			return Line{
				Text: words,
				Verb: f.verb,
				Args: m[1:],
			}, true
		}
	}

	return Line{}, false
}

// wish is what a story says of a plug-in or an intent.
type wish struct {
	kwh     float64
	readyBy flex.WallTime
	mode    flex.ChargingMode
	peak    bool
	offPeak string
	zone    string
	rate    float64
	given   bool // whether an intent was given at all
}

var wishForms = map[string]*regexp.Regexp{
	"need":   regexp.MustCompile(`(?:need )?([\d.]+)kWh by (\d\d:\d\d)`),
	"tariff": regexp.MustCompile(`tariff ((?:\d\d:\d\d-\d\d:\d\d,? ?)+)(\S+/\S+|UTC)`),
	"rate":   regexp.MustCompile(`rate ([\d.]+)kW`),
}

// readWish reads the words of a wish: "need 20kWh by 07:00 tariff 00:30-05:30
// Europe/London rate 7.4kW maximise peak allowed", each part only if it is meant.
func readWish(words string) (wish, error) {
	var w wish
	w.mode = flex.Minimise
	if strings.Contains(words, "maximise") {
		w.mode = flex.Maximise
	}

	w.peak = strings.Contains(words, "peak allowed")

	var err error
	if m := wishForms["need"].FindStringSubmatch(words); m != nil {
		w.given = true
		w.kwh, err = strconv.ParseFloat(m[1], 64)
		if err != nil {
			return w, err
		}

		w.readyBy, err = flex.ParseWallTime(m[2])
		if err != nil {
			return w, err
		}
	}

	if m := wishForms["tariff"].FindStringSubmatch(words); m != nil {
		w.offPeak, w.zone = strings.TrimSpace(m[1]), m[2]
	}

	if m := wishForms["rate"].FindStringSubmatch(words); m != nil {
		w.rate, err = strconv.ParseFloat(m[1], 64)
		if err != nil {
			return w, err
		}
	}

	return w, nil
}

// PlugIn reads the words of a story's wish as the body of a plug-in event at the instant.
// Its Intent and Tariff are nil where the words say nothing of them.
func PlugIn(
	words string,
	now time.Time,
) (client.PlugInEventRequest, error) {
	w, err := readWish(words)

	var in client.PlugInEventRequest
	if err != nil {
		return in, err
	}

	if w.given {
		local := client.WallTime(w.readyBy)
		in.Intent = &client.Intent{
			EnergyRequiredKWh: w.kwh,
			ReadyBy:           client.At(now),
			ReadyByLocalTime:  &local,
			MayChargePeak:     w.peak,
			ChargingMode:      client.ChargingMode(w.mode),
		}
	}

	if w.offPeak != "" {
		in.Tariff = &client.Tariff{OffPeakTimes: w.offPeak, Timezone: w.zone}
	}

	if w.rate > 0 {
		in.Vehicle = &client.Vehicle{ChargingRateKW: w.rate}
	}

	return in, nil
}
