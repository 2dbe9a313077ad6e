package tariff

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

func vector[T any](t *testing.T, name string) (v T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGrammarVectors(t *testing.T) {
	type entry struct {
		Text    string `json:"off_peak_times"`
		Zone    string `json:"timezone"`
		Minutes [][2]int
	}
	v := vector[struct {
		Valid   []entry
		Invalid []entry `json:"invalid_400"`
	}](t, "tariff-grammar.json")
	if len(v.Valid) == 0 || len(v.Invalid) == 0 {
		t.Fatal("no vectors")
	}

	for _, e := range v.Valid {
		w, err := Parse(e.Text, e.Zone, flex.DualRate)
		if err != nil {
			t.Errorf("%q: %v", e.Text, err)
			continue
		}

		var got [][2]int
		for _, h := range w.ranges {
			got = append(got, [2]int{int(h.from.Minutes()), int(h.to.Minutes())})
		}
		if fmt.Sprint(got) != fmt.Sprint(e.Minutes) {
			t.Errorf("%q: %v, want %v", e.Text, got, e.Minutes)
		}
	}

	for _, e := range v.Invalid {
		if _, err := Parse(e.Text, e.Zone, flex.DualRate); flex.KindOf(err) != flex.Malformed {
			t.Errorf("%q in %q: %v, want a refusal", e.Text, e.Zone, err)
		}
	}
}

func TestResolvedVectors(t *testing.T) {
	v := vector[struct {
		Resolved []struct {
			Text    string `json:"off_peak_times"`
			Zone    string `json:"timezone"`
			Date    string
			Windows [][3]any
		}
		Reject []struct{ Input string } `json:"should_reject_400"`
	}](t, "off_peak_times.json")

	for _, e := range v.Resolved {
		w, err := Parse(e.Text, e.Zone, flex.DualRate)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := flex.ParseDay(e.Date)
		spans := w.Spans(d.Span())
		if len(spans) != len(e.Windows) {
			t.Fatalf("%s on %s: %v, want %v", e.Text, e.Date, spans, e.Windows)
		}

		for i, s := range spans {
			got := [3]any{s.From.Format(time.RFC3339), s.To.Format(time.RFC3339), s.Len().Minutes()}
			if got != e.Windows[i] {
				t.Errorf("%s on %s: %v, want %v", e.Text, e.Date, got, e.Windows[i])
			}
		}
	}

	// Two of the inputs that the vectors would have refused have one clear meaning.
	kept := map[string]string{
		"23:30-05:30":             "00:00-05:30,23:30-24:00",
		"00:00-07:00,06:00-08:00": "00:00-08:00",
	}
	for _, e := range v.Reject {
		w, err := Parse(e.Input, "Europe/London", flex.DualRate)
		if want, ok := kept[e.Input]; ok {
			if err != nil || w.String() != want {
				t.Errorf("%q: %v %v, want %s", e.Input, w, err, want)
			}
		} else if flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), "HH:MM-HH:MM") {
			t.Errorf("%q: %v, want a refusal that shows the right form", e.Input, err)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		typ  flex.TariffType
		want string // in the one form, or ! and a part of the refusal
	}{
		{"00:00-07:00", "", "00:00-07:00"},
		{" 23:30-24:00 ,00:00-05:30 ", "", "00:00-05:30,23:30-24:00"},
		{"00:00-24:00", "", "00:00-24:00"},
		{"23:30-00:00", "", "23:30-24:00"},
		{"12:00-11:59", "", "00:00-11:59,12:00-24:00"},
		{"12:00-12:00", "", "!whole day"},
		{"00:00-00:00", "", "!whole day"},
		{"24:00-05:00", "", "!24:00"},
		{"00:00-24:01", "", "!not a range"},
		{"00:60-01:00", "", "!not a range"},
		{"0:00-07:00", "", "!not a range"},
		{"00:00-07:00,", "", "!comma"},
		{",00:00-07:00", "", "!comma"},
		{"00:00-03:00,,04:00-05:00", "", "!comma"},
		{"00:00 - 07:00", "", "!not a range"},
		{"00:00-07:00\n", "", "!not a range"},
		{"00:00-07:00-08:00", "", "!not a range"},
		{"00:00-29:30", "", "!not a range"},
		{"00:00:00-07:00:00", "", "!not a range"},
		{"٠٠:٠٠-٠٧:٠٠", "", "!not a range"},
		{"24/7", "", "!not a range"},
		{"00:00-07:00;Sa off", "", "!not a range"},
		{"", flex.DualRate, "!empty"},
		{"", "", "!empty"},
		{"  ", flex.SmartTariff, "!empty"},
		{"", flex.SingleRate, "00:00-24:00"},
		{" ", flex.DynamicTariff, "00:00-24:00"},
		{"01:00-02:00", flex.SingleRate, "01:00-02:00"},
		{strings.Repeat("x", 5000), "", "!…"},
		{strings.Repeat("00:00-01:00,", MaxRanges-1) + "02:00-03:00", "", "00:00-01:00,02:00-03:00"},
		{strings.Repeat("00:00-01:00,", MaxRanges) + "02:00-03:00", "", "!more than 48"},
	} {
		w, err := Parse(c.text, "Europe/London", c.typ)

		if part, bad := strings.CutPrefix(c.want, "!"); bad {
			if flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), part) || len(err.Error()) > 300 {
				t.Errorf("%q: %v, want a refusal with %q", c.text, err, part)
			}
		} else if err != nil || w.String() != c.want {
			t.Errorf("%q: %v, %v, want %s", c.text, w, err, c.want)
		}
	}
}

func TestZone(t *testing.T) {
	for _, name := range []string{"Europe/London", "UTC", "Etc/GMT+5", "Australia/Lord_Howe", "GB"} {
		for range 2 {
			if z, err := Zone(name); err != nil || z.String() != name {
				t.Errorf("%s: %v %v", name, z, err)
			}
		}
	}
	for _, name := range []string{"", "Local", "Mars/Phobos", "europe/london", "BST", "+01:00", "../etc/passwd",
		"Europe", "posix/Europe/London", "right/Europe/London", "posixrules", "Europe/London ", "Europe\\London",
		"Europe//London", "Europe/./London", "Europe/London/", "Europe/./././London"} {
		if z, err := Zone(name); flex.KindOf(err) != flex.Malformed {
			t.Errorf("%q: %v, %v, want a refusal", name, z, err)
		}
	}
}

// must parses hours that are known to be right.
func must(t testing.TB, text, zone string) Windows {
	w, err := Parse(text, zone, flex.DualRate)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestEveryDayOfTenYears holds the law that a minute is off-peak exactly if the wall
// shows an off-peak time, on every London day, and that the hours and their complement
// share each day out without a gap.
func TestEveryDayOfTenYears(t *testing.T) {
	off := must(t, "00:30-04:30,13:00-16:00,22:15-24:00", "Europe/London")
	peak := must(t, "00:00-00:30,04:30-13:00,16:00-22:15", "Europe/London")
	cheap := func(h, m int) bool {
		n := h*60 + m
		return n >= 30 && n < 270 || n >= 780 && n < 960 || n >= 1335
	}

	for d := (flex.Day{Year: 2020, Month: 1, Dom: 1}); d.Year < 2030; d = d.Add(1) {
		var total time.Duration
		for _, s := range append(off.Spans(d.Span()), peak.Spans(d.Span())...) {
			total += s.Len()
		}
		if total != d.Span().Len() {
			t.Fatalf("%s: off-peak and peak hold %v of %v", d, total, d.Span().Len())
		}

		spans := off.Spans(d.Span())
		for at := d.Start(); at.Before(d.Add(1).Start()); at = at.Add(15 * time.Minute) {
			local := at.In(flex.London)
			if got := covers(spans, at); got != cheap(local.Hour(), local.Minute()) {
				t.Fatalf("%s: off-peak %v", local, got)
			}
		}
	}
}

func covers(spans []flex.Span, at time.Time) bool {
	for _, s := range spans {
		if s.Contains(at) {
			return true
		}
	}
	return false
}

// Zones with a change of the clocks of every kind: an hour at 01:00 UTC, at 02:00 local
// time, half an hour, at midnight, none, and a whole day left out.
var zoneNames = []string{"Europe/London", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kolkata", "Pacific/Apia", "UTC"}

func drawWindows(t *rapid.T) (string, string) {
	n := rapid.IntRange(1, 6).Draw(t, "ranges")
	parts := make([]string, n)
	for i := range parts {
		from := rapid.IntRange(0, 1439).Draw(t, "from")
		to := rapid.IntRange(1, 1440).Filter(func(m int) bool { return m != from }).Draw(t, "to")
		parts[i] = fmt.Sprintf("%02d:%02d-%02d:%02d", from/60, from%60, to/60, to%60)
	}
	return strings.Join(parts, ","), rapid.SampledFrom(zoneNames).Draw(t, "zone")
}

// TestSpansAgainstTheWall asks the wall clock about random instants, many of them
// near a change of the clocks.
func TestSpansAgainstTheWall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, zone := drawWindows(t)
		w, err := Parse(text, zone, flex.DualRate)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(w.String(), zone, flex.DualRate); err != nil || again.String() != w.String() {
			t.Fatalf("%s reads back as %v, %v", w, again, err)
		}

		from := time.Unix(rapid.Int64Range(1262304000, 1893456000).Draw(t, "at"), 0)
		if start, _ := from.In(w.zone).ZoneBounds(); !start.IsZero() && rapid.Bool().Draw(t, "near a change") {
			from = start.Add(time.Duration(rapid.IntRange(-30*60, 60).Draw(t, "minutes")) * time.Minute)
		}
		within := flex.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(0, 72*60).Draw(t, "length")) * time.Minute)}
		spans := w.Spans(within)
		for i, s := range spans {
			if s.Empty() || s.Meet(within) != s && !s.Meet(within).From.Equal(s.From) || i > 0 && !spans[i-1].To.Before(s.From) {
				t.Fatalf("%v within %v", spans, within)
			}
		}

		for range 40 {
			at := within.From.Add(time.Duration(rapid.IntRange(-60, 73*60).Draw(t, "probe")) * time.Minute)
			h, m, s := at.In(w.zone).Clock()
			wall := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
			want := false

			for _, part := range strings.Split(text, ",") {
				r, _ := parseRange(part)
				if r.from < r.to {
					want = want || wall >= r.from && wall < r.to
				} else {
					want = want || wall >= r.from || wall < r.to
				}
			}

			want = want && within.Contains(at)
			if got := covers(spans, at); got != want {
				t.Fatalf("%s in %s: at %s off-peak %v", text, zone, at.In(w.zone), got)
			}
		}
	})
}

func TestNextTimeOfDay(t *testing.T) {
	for _, c := range []struct{ after, wall, zone, want string }{
		{"2026-04-14T22:00:00Z", "07:00", "UTC", "2026-04-15T07:00:00Z"},
		{"2026-04-14T22:00:00Z", "07:00", "Europe/London", "2026-04-15T06:00:00Z"},
		{"2026-04-15T05:59:59Z", "07:00", "Europe/London", "2026-04-15T06:00:00Z"},
		{"2026-04-15T06:00:00Z", "07:00", "Europe/London", "2026-04-16T06:00:00Z"}, // strictly after
		{"2025-10-25T20:00:00Z", "01:30", "Europe/London", "2025-10-26T00:30:00Z"}, // the first of two
		{"2025-10-26T00:30:00Z", "01:30", "Europe/London", "2025-10-27T01:30:00Z"}, // the second is not another
		{"2025-10-26T00:45:00Z", "01:30", "Europe/London", "2025-10-27T01:30:00Z"},
		{"2025-10-25T20:00:00Z", "00:00", "Europe/London", "2025-10-25T23:00:00Z"},
		{"2025-10-25T20:00:00Z", "02:00", "Europe/London", "2025-10-26T02:00:00Z"},
		{"2025-03-29T20:00:00Z", "01:30", "Europe/London", "2025-03-30T01:00:00Z"}, // the end of the gap
		{"2025-03-29T20:00:00Z", "01:00", "Europe/London", "2025-03-30T01:00:00Z"},
		{"2025-03-29T20:00:00Z", "02:00", "Europe/London", "2025-03-30T01:00:00Z"},
		{"2025-03-30T01:00:00Z", "01:30", "Europe/London", "2025-03-31T00:30:00Z"},
		{"2025-03-09T05:00:00Z", "02:30:00", "America/New_York", "2025-03-09T07:00:00Z"},
		{"2025-04-05T10:00:00Z", "01:45:00", "Australia/Lord_Howe", "2025-04-05T14:45:00Z"}, // half an hour comes twice
		{"2025-03-08T12:00:00Z", "00:30:00", "America/Havana", "2025-03-09T05:00:00Z"},      // midnight itself is skipped
		{"2011-12-30T09:00:00Z", "07:00", "Pacific/Apia", "2011-12-30T10:00:00Z"},           // so is a day
		{"2025-01-01T00:00:00Z", "23:59:59", "Asia/Kolkata", "2025-01-01T18:29:59Z"},
	} {
		after, _ := time.Parse(time.RFC3339, c.after)
		wall, err := flex.ParseWallTime(c.wall)
		if err != nil {
			t.Fatal(err)
		}

		zone, err := Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := NextTimeOfDay(after, wall, zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%s after %s in %s: %s, want %s", c.wall, c.after, c.zone, got, c.want)
		}
	}
}

// A job that runs every ten minutes, and works if a time of day was reached within the hour before, works six times in the
// hour after it and at no other time, on the days of both clock changes as on others (CONTRIBUTING.md).
func TestNextTimeOfDay_Job(t *testing.T) {
	for _, c := range []struct {
		wall flex.WallTime
		from string // the first run of three days
		want []string
	}{
		{flex.WallTime(3 * time.Hour), "2026-03-28T00:05:00Z", []string{"2026-03-28T03:05:00Z", "2026-03-29T02:05:00Z", "2026-03-30T02:05:00Z"}},
		{flex.WallTime(3 * time.Hour), "2026-10-24T00:05:00Z", []string{"2026-10-24T02:05:00Z", "2026-10-25T03:05:00Z", "2026-10-26T03:05:00Z"}},
		{flex.WallTime(90 * time.Minute), "2026-03-28T00:05:00Z", []string{"2026-03-28T01:35:00Z", "2026-03-29T01:05:00Z", "2026-03-30T00:35:00Z"}},
		{flex.WallTime(90 * time.Minute), "2026-10-24T00:05:00Z", []string{"2026-10-24T00:35:00Z", "2026-10-25T00:35:00Z", "2026-10-26T01:35:00Z"}},
	} {
		first, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}

		var works []string
		for now := first; now.Before(first.Add(3*day - time.Hour)); now = now.Add(10 * time.Minute) {
			if !NextTimeOfDay(now.Add(-time.Hour), c.wall, flex.London).After(now) {
				works = append(works, now.Format(time.RFC3339))
			}
		}

		var want []string
		for _, text := range c.want {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}

			for i := range 6 {
				want = append(want, at.Add(time.Duration(i)*10*time.Minute).Format(time.RFC3339))
			}
		}

		if !slices.Equal(works, want) {
			t.Errorf("%s from %s: works at %q, want %q", c.wall, c.from, works, want)
		}
	}
}

// TestNextTimeOfDay_Search compares with a search minute by minute.
func TestNextTimeOfDay_Search(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := Zone(rapid.SampledFrom(zoneNames).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}

		after := time.Unix(rapid.Int64Range(1420070400/60, 1893456000/60).Draw(t, "at")*60, 0)
		if start, _ := after.In(zone).ZoneBounds(); !start.IsZero() && rapid.Bool().Draw(t, "near a change") {
			after = start.Add(time.Duration(rapid.IntRange(-30*60, 180).Draw(t, "minutes")) * time.Minute)
		}
		minute := rapid.IntRange(0, 1439).Draw(t, "wall")
		got := NextTimeOfDay(after, flex.WallTime(time.Duration(minute)*time.Minute), zone)
		shown := map[string]bool{}
		last := after.Add(-26*time.Hour - time.Minute)

		for at := last.Add(time.Minute); ; last, at = at, at.Add(time.Minute) {
			for w := min(face(last, zone)+1, face(at, zone)); w <= face(at, zone); w++ { // more than one: a gap
				if (w%1440+1440)%1440 != int64(minute) {
					continue
				}
				date := time.Unix(w*60, 0).UTC().Format(time.DateOnly)
				if shown[date] {
					continue
				}

				shown[date] = true
				if at.After(after) {
					if !at.Equal(got) {
						t.Fatalf("%02d:%02d after %s: %s, want %s", minute/60, minute%60, after.In(zone), got.In(zone), at.In(zone))
					}
					return
				}
			}
		}
	})
}

// face returns what a clock in the zone shows at the instant, date and all, in minutes.
func face(at time.Time, zone *time.Location) int64 {
	_, offset := at.In(zone).Zone()
	return (at.Unix() + int64(offset)) / 60
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"00:00-05:30, 23:30-24:00", "23:30-05:30", "", ",", "00:00–07:00", "24:00-24:00"} {
		f.Add(s, "Europe/London", "dual_rate")
	}

	f.Add("", "UTC", "single_rate")
	f.Add("00:00-07:00", "Mars/Phobos", "smart")
	f.Fuzz(func(t *testing.T, text, zone, typ string) {
		w, err := Parse(text, zone, flex.TariffType(typ))
		if err != nil {
			if flex.KindOf(err) != flex.Malformed {
				t.Fatalf("%q: %v was not written to be shown", text, err)
			}
			return
		}

		again := must(t, w.String(), zone)
		d := flex.Day{Year: 2025, Month: 10, Dom: 26}
		if fmt.Sprint(again.Spans(d.Span())) != fmt.Sprint(w.Spans(d.Span())) || len(w.ranges) == 0 {
			t.Fatalf("%q reads back as %s", text, again)
		}
	})
}

func BenchmarkNight(b *testing.B) {
	from := time.Date(2026, 4, 14, 18, 0, 0, 0, time.UTC)
	night := flex.Span{From: from, To: from.Add(14 * time.Hour)}
	for b.Loop() {
		w, _ := Parse("00:00-05:30, 23:30-24:00", "Europe/London", flex.DualRate)
		if len(w.Spans(night)) != 1 {
			b.Fatal("a night has one stretch")
		}
	}
}

// The last day of a leap year after 2037 is one on which Go does not say when the clocks
// change next: hours and ready-by must be found on it as on any other.
func TestFarYears(t *testing.T) {
	w, err := Parse("00:00-05:30,23:30-24:00", "Europe/London", flex.DualRate)
	if err != nil {
		t.Fatal(err)
	}

	for year := 2036; year <= 2060; year++ {
		eve := time.Date(year, 12, 30, 12, 0, 0, 0, time.UTC)
		for at := eve; at.Before(eve.Add(3 * day)); at = at.Add(time.Hour) {
			if got := NextTimeOfDay(at, flex.WallTime(7*time.Hour), flex.London); !got.After(at) || got.Sub(at) > day || got.Hour() != 7 {
				t.Errorf("ready by 07:00 after %v: %v", at, got)
			}
		}

		var off time.Duration
		for _, s := range w.Spans(flex.Span{From: eve, To: eve.Add(3 * day)}) {
			off += s.Len()
		}
		if off != 3*6*time.Hour {
			t.Errorf("%d: %v off-peak in three days", year, off)
		}
	}
}
