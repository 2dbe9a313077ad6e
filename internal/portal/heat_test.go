package portal

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// What heaters do, and cars that give electricity back, is said in a sentence or two, of what is still to come.
func TestSpeech_Heat(t *testing.T) {
	now := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
	span := func(from, to int) flex.Span {
		return flex.Span{From: now.Add(time.Duration(from) * time.Hour), To: now.Add(time.Duration(to) * time.Hour)}
	}

	tank := control.HouseholdHeat{Asset: flex.Asset{Type: flex.HotWaterTank}, Planned: true, Until: now.Add(30 * time.Hour), Coldest: 47.6, Warmest: 58.2}
	often := tank
	often.Heating = []flex.Span{span(1, 2), span(3, 4), span(5, 6), span(7, 8), span(9, 10)}
	daily := tank
	daily.Heating = []flex.Span{span(1, 2), span(5, 6), span(25, 26)}
	cold := control.HouseholdHeat{Asset: flex.Asset{Type: flex.HeatPump}, Planned: true, Heating: []flex.Span{span(0, 4)},
		Until: now.Add(30 * time.Hour), Coldest: 17.8, Warmest: 20.3, LackAt: now.Add(13 * time.Hour)}
	car := control.HouseholdCar{Planned: true, Zone: flex.London, ReadyBy: now.Add(13 * time.Hour), Discharging: []flex.Span{span(-2, -1), span(0, 2)}, Reserve: 40, ReadyLevel: 80}
	over := car
	over.ReadyBy = now

	l := speeches[0]
	for name, c := range map[string]struct{ got, want string }{
		"no plan":  {l.heatsText(control.HouseholdHeat{}) + l.warmText(control.HouseholdHeat{}), "There is no plan for it: it heats as it is set."},
		"idle":     {l.heatsText(tank), "It need not heat until 00:00 on Saturday."},
		"often":    {l.heatsText(often), "It heats 19:00 to 20:00, 21:00 to 22:00, 23:00 to 00:00 and 01:00 to 02:00, and again later."},
		"daily":    {l.heatsText(daily), "It heats 19:00 to 20:00 and 23:00 to 00:00, and again later."},
		"water":    {l.warmText(tank), "Your water is then expected to be between 48 and 58 °C, until 00:00 on Saturday."},
		"rooms":    {l.heatsText(cold), "It heats 18:00 to 22:00."},
		"too cold": {l.warmText(cold), "Your rooms are then expected to be between 18 and 20.5 °C, until 00:00 on Saturday. About 07:00 that is less than you asked for: it cannot heat more."},
		"gives":    {l.givesText(car, now), "It gives electricity back 18:00 to 20:00. It keeps at least 40 % of its battery, and is charged again what it gave."},
		"full":     {l.fullText(car, now), "Its battery is expected to be 80 % full by 07:00 on Friday."},
		"over":     {l.givesText(over, now) + l.fullText(over, now), ""},
		"unknown":  {l.fullText(control.HouseholdCar{ReadyBy: now.Add(time.Hour)}, now), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, not %q", name, c.got, c.want)
		}
	}
}
