package adr

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// noon is when the events of these tests were written.
var noon = time.Date(2026, 1, 15, 12, 0, 30, 0, time.UTC)

// eventWith is an event with a document.
func eventWith(document string) *flex.ADRObject {
	return &flex.ADRObject{Document: document, CreatedAt: noon, ModifiedAt: noon}
}

// text says what an order asks for, in a few words.
func (o *Order) text() string {
	at := o.From.Format("15:04") + "-" + o.To.Format("15:04") + " "
	switch {
	case o.Problem != "":
		return at + o.Problem
	case o.Limit != nil:
		at += fmt.Sprintf("not above %g kW", o.Limit.KW())
		if o.Direction == flex.Export {
			at += " of export"
		}
		return at
	}
	return at + fmt.Sprintf("%+g kW", o.Change.KW())
}

// TestOrders reads what events ask of a fleet.
func TestOrders(t *testing.T) {
	b := &flex.ADRBinding{Simple: []flex.Watts{-100_000, -200_500}}
	const evening = `"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"PT1H"},`
	for _, at := range []struct{ event, want string }{
		{`"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"PT30M"},"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[50]}]},{"id":1,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[20.5]}]}]`,
			"17:00-17:30 not above 50 kW, 17:30-18:00 not above 20.5 kW"},
		{`"payloadDescriptors":[{"payloadType":"DISPATCH_SETPOINT_RELATIVE","units":"MW"}],"intervals":[{"id":0,"intervalPeriod":{"start":"2026-01-15T17:00:20Z","duration":"PT1H"},"payloads":[{"type":"DISPATCH_SETPOINT_RELATIVE","values":[-1.5]}]}]`,
			"17:01-18:00 -1500 kW"},
		{`"intervalPeriod":{"start":"0001-01-01T00:00:00Z","duration":"PT1H"},"intervals":[{"id":0,"payloads":[{"type":"ALERT_GRID_EMERGENCY","values":["now"]}]}]`,
			"12:01-13:00 not above 0 kW"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[0]}]},{"id":1,"payloads":[{"type":"SIMPLE","values":[2]}]},{"id":2,"payloads":[{"type":"PRICE","values":[1]}]}]`,
			"18:00-19:00 -200.5 kW"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"PRICE","values":[1]},{"type":"SIMPLE","values":[1]},{"type":"IMPORT_CAPACITY_LIMIT","values":[7]}]}]`,
			"17:00-18:00 -100 kW, 17:00-18:00 not above 7 kW"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[3]}]},{"id":1,"payloads":[{"type":"SIMPLE","values":[1]}]}]`,
			"17:00-18:00 SIMPLE: the program is bound without a change for the level 3, 18:00-19:00 -100 kW"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[1e300]}]}]`, "without a change for the level 1e+300"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[1e300]}]}]`, "more than a fleet can be asked for"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":["much"]}]}]`, "much is no number"},
		{`"intervalPeriod":{"start":"2026-01-15T17:00:00Z"},"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[3]}]}]`, "17:00-17:01 it has no end"},
		{`"intervals":[{"id":0,"intervalPeriod":{"start":"2026-01-15T17:00:00Z"},"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[3]}]},{"id":1,"intervalPeriod":{"start":"2026-01-15T18:00:00Z","duration":"PT1H"},"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[7]}]}]`,
			"17:00-17:01 it has no end, 18:00-19:00 not above 7 kW"},
		{`"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"PT30S"},"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[3]}]}]`, "shorter than a minute"},
		{`"intervalPeriod":{"start":"2026-01-15T11:00:00Z","duration":"PT30M"},"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[1]}]}]`, "11:00-11:30 it was over when it came"},
		{`"intervalPeriod":{"start":"2026-01-15T11:45:00Z","duration":"PT30M"},"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[1]}]}]`, "11:45-12:15 -100 kW"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[-3]}]}]`, "not negative"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"EXPORT_CAPACITY_LIMIT","values":[3]},{"type":"IMPORT_CAPACITY_LIMIT","values":[7]}]}]`,
			"17:00-18:00 not above 3 kW of export, 17:00-18:00 not above 7 kW"},
		{evening + `"intervals":[{"id":0,"payloads":[{"type":"CONTROL_SETPOINT","values":[3]}]}]`, "does not carry this out"},
		{`"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"PT30M","randomizeStart":"PT10M"},"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[1]}]},{"id":1,"payloads":[{"type":"SIMPLE","values":[2]}]}]`,
			"17:00-17:30 -100 kW, 17:30-18:00 -200.5 kW"},
		{`"duration":"P7D",` + evening + `"intervals":[{"id":0,"payloads":[{"type":"SIMPLE","values":[1]}]}]`,
			"17:00-18:00 -100 kW, 18:00-18:01 the event's duration is longer than its intervals"},
		{`"payloadDescriptors":[{"payloadType":"DISPATCH_SETPOINT","units":"KWH"}],"intervalPeriod":{"duration":"PT1H"},"intervals":[{"id":0,"payloads":[{"type":"DISPATCH_SETPOINT","values":[3]}]}]`, `unit "KWH"`},
	} {
		orders, err := ordersOf(b, eventWith("{"+at.event+"}"), nil)
		if err != nil {
			t.Fatal(err)
		}

		var said []string
		for _, o := range orders {
			said = append(said, o.text())
		}
		if got := strings.Join(said, ", "); !strings.Contains(got, at.want) {
			t.Errorf("%s: %s, want %s", at.event, got, at.want)
		}
	}
}

// TestOrders_FollowOn has intervals that follow one another, but not at whole minutes: no
// minute between them is left out, and none before the first that asks for something is added.
func TestOrders_FollowOn(t *testing.T) {
	var moved flex.ADRObjectID
	binary.BigEndian.PutUint64(moved[8:], uint64(90_500*time.Millisecond))

	const limits = `"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[50]}]},{"id":1,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[20]}]}]`
	for _, c := range []struct {
		id          flex.ADRObjectID
		event, want string
	}{
		{flex.ADRObjectID{}, `"intervalPeriod":{"start":"0001-01-01T00:00:00Z","duration":"PT30M"},` + limits,
			"12:01-12:30 not above 50 kW, 12:30-13:00 not above 20 kW"},
		{moved, `"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"PT30M","randomizeStart":"PT10M"},` + limits,
			"17:02-17:31 not above 50 kW, 17:31-18:01 not above 20 kW"},
		{flex.ADRObjectID{}, `"intervalPeriod":{"start":"2026-01-15T17:00:20Z","duration":"PT30M"},"intervals":[{"id":0,"payloads":[{"type":"PRICE","values":[1]}]},{"id":1,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[20]}]}]`,
			"17:31-18:00 not above 20 kW"},
		{flex.ADRObjectID{}, `"intervalPeriod":{"start":"2026-01-15T17:00:30Z","duration":"PT45S"},` + limits,
			"17:01-17:02 it is shorter than a minute, 17:02-17:03 it is shorter than a minute"},
	} {
		event := eventWith("{" + c.event + "}")
		event.ID = c.id
		orders, err := ordersOf(&flex.ADRBinding{}, event, nil)
		if err != nil {
			t.Fatal(err)
		}

		var said []string
		for _, o := range orders {
			said = append(said, o.text())
		}
		if got := strings.Join(said, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.event, got, c.want)
		}
	}
}

// TestEnd has an event that says in its interval alone when it begins be over a length of its
// own later.
func TestEnd(t *testing.T) {
	var e eventDocument
	err := json.Unmarshal([]byte(`{"duration":"PT1H","intervals":[{"id":0,"intervalPeriod":{"start":"2026-01-16T17:00:00Z","duration":"PT1H"},"payloads":[]}]}`), &e)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.end(noon); !got.Equal(time.Date(2026, 1, 16, 18, 0, 0, 0, time.UTC)) {
		t.Errorf("it ends at %s", got)
	}
}

// TestReported has a report leave out what was withdrawn where there is more than it may have.
func TestReported(t *testing.T) {
	orders := make([]store.ADROrder, IntervalsMax+2)
	for i := range orders {
		orders[i] = store.ADROrder{Interval: i, State: store.ADRSent}
	}
	orders[7].State = store.ADRWithdrawn

	_, kept, outcomes := reportableOrders(flex.ADRObjectID{1}, orders, make([]*Outcome, len(orders)))
	if len(kept) != IntervalsMax || len(outcomes) != IntervalsMax || kept[0].Interval != 1 || kept[6].Interval != 8 {
		t.Errorf("%d orders and %d outcomes, from %d on", len(kept), len(outcomes), kept[0].Interval)
	}
}

// TestInOrder has a server's events be kept in the order in which they were made there.
func TestInOrder(t *testing.T) {
	found := map[string]map[string]any{
		"c": {"createdDateTime": "2026-01-15T10:00:10Z"},
		"a": {"createdDateTime": "2026-01-15T10:00:20Z"},
		"b": {"createdDateTime": "2026-01-15T10:00:20Z"},
		"d": {},
	}
	if got := strings.Join(inOrder(found), " "); got != "d c a b" {
		t.Errorf("%s", got)
	}
}

// TestOffset draws the same offset for the same interval, within what was asked for.
func TestOffset(t *testing.T) {
	within, err := parseLength("PT10M")
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseLength("-PT10M")
	if err != nil {
		t.Fatal(err)
	}

	known := map[time.Duration]bool{}
	for i := range 100 {
		id := flex.ADRObjectID{8: 0x81, 15: byte(i)}
		d := offset(id, i, within)
		known[d] = true
		if d < 0 || d >= 10*time.Minute || d != offset(id, i, within) || offset(id, i, back) > 0 {
			t.Errorf("offset %s, %s", d, offset(id, i, back))
		}
	}
	if len(known) < 50 || offset(flex.ADRObjectID{1}, 1, lengthOf{}) != 0 {
		t.Errorf("%d offsets", len(known))
	}
}

// TestRank holds random events of several priorities against what each minute should be: the
// order of the highest priority, and of the same the newest, of each direction. Nothing that
// was asked for is lost without a word.
func TestRank(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	minute := func(n int) time.Time { return noon.Truncate(time.Hour).Add(time.Duration(n) * time.Minute) }

	for range 2000 {
		var orders []Order
		events := make([]*flex.ADRObject, 1+draw.IntN(5))

		for i := range events {
			events[i] = &flex.ADRObject{ID: flex.ADRObjectID{15: byte(i + 1)}, CreatedAt: minute(i)}
			from := draw.IntN(50)
			way := []flex.Direction{flex.Import, flex.Export}[draw.IntN(2)]
			orders = append(orders, Order{Direction: way, Event: events[i], Priority: int64(draw.IntN(3)), Change: flex.Watts(i + 1), Span: flex.Span{From: minute(from), To: minute(from + 1 + draw.IntN(20))}})
			if next := orders[len(orders)-1]; draw.IntN(2) == 0 { // a later interval, whose end is known
				next.From = next.To.Add(time.Duration(draw.IntN(2)) * time.Minute)
				next.To = next.From.Add(time.Minute)
				orders = append(orders, next)
			}
		}

		asked := append([]Order{}, orders...)
		ranked := byPriority(orders)
		for n := range 2 * 75 {
			m, way := n/2, []flex.Direction{flex.Import, flex.Export}[n%2]
			var best *Order
			for i := range asked {
				o := &asked[i]
				better := best == nil || o.Priority < best.Priority || o.Priority == best.Priority && o.Event.CreatedAt.After(best.Event.CreatedAt)
				if o.Direction == way && o.Contains(minute(m)) && better {
					best = o
				}
			}

			var got []flex.Watts
			for _, o := range ranked {
				if o.Direction == way && o.Contains(minute(m)) && o.Outrank == "" {
					got = append(got, o.Change)
				}
			}
			if best == nil && len(got) > 0 || best != nil && (len(got) != 1 || got[0] != best.Change) {
				t.Fatalf("minute %d: %v, want %+v", m, got, best)
			}
		}

		for _, e := range events {
			found := false
			for _, o := range ranked {
				found = found || o.Event == e
			}
			if !found {
				t.Fatal("an event is lost")
			}
		}
	}
}

// TestRank_Unfit has what is refused when it is to be sent leave the time to the other events
// of its program.
func TestRank_Unfit(t *testing.T) {
	const from = `{"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"%s"},"intervals":[{"id":0,"payloads":[{"type":"%s","values":[%g]}]}]}`
	for _, c := range []struct {
		kind         flex.ADRBindingKind
		length, asks string
		value        float64
		unfit        bool
		first, what  string
	}{
		{flex.ADRLimit, "PT1H", "DISPATCH_SETPOINT_RELATIVE", -3, true, "IMPORT_CAPACITY_LIMIT", "a change is no limit"},
		{flex.ADRLimit, "PT1H", "IMPORT_CAPACITY_LIMIT", 2e6, true, "IMPORT_CAPACITY_LIMIT", "more than a limit may be"},
		{flex.ADRLimit, "P2D", "IMPORT_CAPACITY_LIMIT", 3, false, "IMPORT_CAPACITY_LIMIT", "a limit of two days"},
		{flex.ADRInstruction, "PT24H1M", "DISPATCH_SETPOINT_RELATIVE", -3, true, "DISPATCH_SETPOINT_RELATIVE", "too long for an instruction"},
		{flex.ADRInstruction, "PT24H", "DISPATCH_SETPOINT_RELATIVE", -3, false, "DISPATCH_SETPOINT_RELATIVE", "as long as an instruction may be"},
		{flex.ADRInstruction, "PT1H", "IMPORT_CAPACITY_LIMIT", 3, false, "IMPORT_CAPACITY_LIMIT", "an instruction's limit"},
	} {
		b := &flex.ADRBinding{Kind: c.kind}
		older := eventWith(fmt.Sprintf(from, "PT1H", c.first, 5.0))
		newer := eventWith(fmt.Sprintf(from, c.length, c.asks, c.value))
		older.ID, newer.ID = flex.ADRObjectID{15: 1}, flex.ADRObjectID{15: 2}
		newer.CreatedAt = noon.Add(time.Second)

		var asked []Order
		for _, event := range []*flex.ADRObject{older, newer} {
			orders, err := ordersOf(b, event, nil)
			if err != nil {
				t.Fatal(err)
			}
			asked = append(asked, orders...)
		}

		ranked := byPriority(asked)
		if len(ranked) != 2 {
			t.Fatalf("%s: %+v", c.what, ranked)
		}
		for _, o := range ranked {
			outranked := o.Event == older && !c.unfit
			if got := o.Outrank != ""; got != outranked || o.Problem != "" {
				t.Errorf("%s: of event %d: outranked %t, %q", c.what, o.Event.ID[15], got, o.Problem)
			}
		}
	}
}

// TestRank_RestFits has an instruction of 30 hours carried out for the 18 that an event of a
// higher priority leaves of it. Without that event it is refused, and an event of a lower
// priority has its own time.
func TestRank_RestFits(t *testing.T) {
	order := func(n byte, from, to time.Duration) Order {
		return Order{
			Event: &flex.ADRObject{ID: flex.ADRObjectID{15: n}}, Priority: int64(n), Direction: flex.Import, Change: -3000,
			Span: flex.Span{From: noon.Add(from), To: noon.Add(to)},
		}
	}

	first, long, last := order(1, 0, 12*time.Hour), order(2, 0, 30*time.Hour), order(3, 13*time.Hour, 14*time.Hour)
	for _, with := range []bool{true, false} {
		asked := []Order{long, last}
		if with {
			asked = append(asked, first)
		}

		ranked := byPriority(asked)
		if len(ranked) != len(asked) {
			t.Fatalf("%+v", ranked)
		}
		for _, o := range ranked {
			whole := o.Event != long.Event || o.Len() == 30*time.Hour
			if o.Unfit != (o.Event == long.Event && !with) || (o.Outrank != "") != (o.Event == last.Event && with) || whole == (o.Event == long.Event && with) {
				t.Errorf("with the first %t: %+v", with, o)
			}
		}
	}
}

// TestReport holds flexd's own reports against the rules of reports.
func TestReport(t *testing.T) {
	orders := []store.ADROrder{
		{Interval: 1, Span: flex.Span{From: noon.Truncate(time.Minute), To: noon.Truncate(time.Minute).Add(time.Hour)}, Change: -10_000, State: store.ADRSent},
		{State: store.ADRRefused, Problem: "it has no end", Span: flex.Span{From: noon, To: noon.Add(time.Minute)}},
	}
	outcomes := []*Outcome{{Asked: -10_000, Baseline: 14_000, Expected: 4000, Metered: 6000, MeteredBaseline: 14_000, NumMetered: 4}, nil}
	setOutcome(&orders[0], outcomes[0], orders[0].To)
	if orders[0].State != store.ADRShort || !strings.Contains(orders[0].Problem, "8.000 of 10.000 kWh were brought, as metered") {
		t.Errorf("%+v", orders[0])
	}
	if next := reportNext(&orders[0], orders[0].To); !next.Equal(orders[0].To.Add(time.Hour)) {
		t.Error(next)
	}

	// Of assets that were to draw nothing before, a few were metered: that says nothing of all.
	more := store.ADROrder{Span: orders[0].Span, Change: 10_000, State: store.ADRSent}
	few := Outcome{Asked: 10_000, Expected: 10_000, Metered: 3500, NumMetered: 1, NumUnmetered: 2}
	setOutcome(&more, &few, more.To)
	if more.State != store.ADRSent || more.Problem != "" {
		t.Errorf("%+v", more)
	}

	written, err := json.Marshal(reportDocument(flex.ADRObjectID{1}, orders, outcomes))
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	if _, err := reportRule.normalise("body", read); err != nil {
		t.Error(err)
	}

	for _, want := range []string{`{"type":"DELTA_USAGE","values":[-8]}`, `"PT60M"`, `{"type":"FLEXD_STATE","values":["refused"]}`, `["it has no end"]`} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %s in %s", want, written)
		}
	}
}

// TestOrders_ProgramUnits: a power is in the unit that the event names, or else its program,
// or else in kW.
func TestOrders_ProgramUnits(t *testing.T) {
	const asks = `"intervalPeriod":{"start":"2026-01-15T17:00:00Z","duration":"PT1H"},"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[5000]}]}]}`
	for _, c := range []struct {
		event string
		usual unitsOf
		want  string
	}{
		{`{`, unitsOf{"IMPORT_CAPACITY_LIMIT": "W"}, "17:00-18:00 not above 5 kW"},
		{`{"payloadDescriptors":[{"payloadType":"IMPORT_CAPACITY_LIMIT"}],`, unitsOf{"IMPORT_CAPACITY_LIMIT": "W"}, "17:00-18:00 not above 5 kW"},
		{`{"payloadDescriptors":[{"payloadType":"IMPORT_CAPACITY_LIMIT","units":"KW"}],`, unitsOf{"IMPORT_CAPACITY_LIMIT": "W"}, "17:00-18:00 not above 5000 kW"},
		{`{`, unitsOf{"EXPORT_CAPACITY_LIMIT": "W"}, "17:00-18:00 not above 5000 kW"},
		{`{`, nil, "17:00-18:00 not above 5000 kW"},
	} {
		orders, err := ordersOf(&flex.ADRBinding{}, eventWith(c.event+asks), c.usual)
		if err != nil || len(orders) != 1 {
			t.Fatalf("%s: %d orders, %v", c.event, len(orders), err)
		}

		if got := orders[0].text(); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.event, c.usual, got, c.want)
		}
	}
}

// TestReport_Numbers: a report has the numbers that its event gives its intervals, and after
// the highest those of intervals that are gone.
func TestReport_Numbers(t *testing.T) {
	event := eventWith(`{"intervals":[{"id":7,"payloads":[]},{"id":1,"payloads":[]}]}`)
	orders := []store.ADROrder{{Interval: 0}, {Interval: 1}, {Interval: 1}, {Interval: 2}, {Interval: 4}}
	found, err := outcomesByInterval(orders, event)
	if err != nil {
		t.Fatal(err)
	}

	for i, want := range []int{7, 1, 1, 8, 10} {
		if found[i].Interval != want {
			t.Errorf("order %d is of the interval %d, want %d", i, found[i].Interval, want)
		}
	}
	if orders[0].Interval != 0 {
		t.Error("the orders themselves were changed")
	}
}
