package openadr_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// received are the utility's reports of an event that it asked for, as "name: resource: id
// value quality, …", sorted.
func (u *utility) received(event string) []string {
	u.Helper()
	var reports []struct {
		Name      string `json:"reportName"`
		Resources []struct {
			Name      string `json:"resourceName"`
			Intervals []struct {
				ID       int
				Payloads []struct {
					Type   string
					Values []any
				}
			}
		}
	}

	r := u.ask(u.bl, "GET", "/reports?eventID="+event, "", "")
	if err := json.Unmarshal([]byte(r.body), &reports); err != nil {
		u.Fatal(err)
	}

	var received []string
	for _, one := range reports {
		if one.Name == "what became of it" {
			continue
		}

		text := one.Name + ":"
		for _, of := range one.Resources {
			text += " " + of.Name + ":"
			for _, i := range of.Intervals {
				text += fmt.Sprint(" ", i.ID)
				for _, p := range i.Payloads {
					text += fmt.Sprint(" ", p.Values[0])
				}
			}
		}
		received = append(received, text)
	}

	slices.Sort(received)
	return received
}

// checkReports polls at an instant of the day and holds the reports of an event against what
// should be there.
func (u *utility) checkReports(event, clock string, want ...string) {
	u.Helper()
	at, err := time.Parse(time.RFC3339, "2026-01-15T"+clock+":00Z")
	if err != nil {
		u.Fatal(err)
	}

	u.now = at
	u.bl = u.client(u.org, "bl "+clock, flex.OpenADRBusiness) // a token is good for an hour
	if _, err := u.adr.PollUpstreams(u.Context()); err != nil {
		u.Fatal(err)
	}
	if asked, err := u.adr.Upstreams(u.Context(), u.mine); err != nil || asked[0].Error != "" {
		u.Errorf("%s: %q is wrong: %v", clock, asked[0].Error, err)
	}
	if received := u.received(event); !slices.Equal(received, want) {
		u.Errorf(
			"%s:\n%s\nwant\n%s",
			clock,
			strings.Join(received, "\n"),
			strings.Join(want, "\n"),
		)
	}
}

// TestTelemetry: the reports that an event asks for are sent when they are due, in the unit
// that was asked for, corrected as meters are read late, and forgotten with their server.
func TestTelemetry(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		drawn := flex.WattHours(2000) // in each half-hour that is over
		u.adr.Fleet = func(_ context.Context, org flex.OrgID, scope flex.Scope, spans []flex.Span) (uses []adr.FleetUse, err error) {
			if org != u.mine || scope != (flex.Scope{Group: "feeder"}) {
				t.Errorf("asked for %v of %v", scope, org)
			}

			for _, span := range spans {
				use := adr.FleetUse{Span: span, Energy: drawn, Quality: adr.QualityOK}
				if span.To.After(u.now) {
					use = adr.FleetUse{Span: span, Energy: 3500, Reducible: 1500, More: 500, IsFuture: true, Quality: adr.QualityEstimated}
				}
				uses = append(uses, use)
			}
			return uses, nil
		}

		interval := func(id int) string {
			return fmt.Sprintf(`{"id":%d,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[9]}]}`, id)
		}
		event := u.ask(u.bl, "POST", "/events", `{"programID":"`+u.program+`","intervalPeriod":{"start":"2026-01-15T18:00:00Z","duration":"PT30M"},
			"intervals":[`+interval(7)+`,`+interval(8)+`,`+interval(9)+`],"reportDescriptors":[
			{"payloadType":"USAGE_FORECAST","startInterval":7,"historical":false,"aggregate":true},
			{"payloadType":"LOAD_SHED_DELTA_AVAILABLE","startInterval":8,"numIntervals":1,"historical":false,"units":"W"},
			{"payloadType":"USAGE","startInterval":7,"numIntervals":1,"frequency":1,"repeat":-1},
			{"payloadType":"DEMAND"},
			{"payloadType":"STORAGE_CHARGE_LEVEL"}]}`, jsonForm).field("id")

		u.checkReports(event, "17:30")
		forecast := "USAGE_FORECAST 1: AGGREGATED_REPORT: 7 3.5 ESTIMATED 8 3.5 ESTIMATED 9 3.5 ESTIMATED"
		u.checkReports(event, "18:00", forecast)
		shed := "LOAD_SHED_DELTA_AVAILABLE 1: the utility: 8 -3000 ESTIMATED"
		first, second := "USAGE 2: the utility: 7 2 OK", "USAGE 3: the utility: 8 2 OK"
		u.checkReports(event, "18:30", shed, first, forecast)
		u.checkReports(event, "19:00", shed, first, second, forecast)
		last := []string{"DEMAND 1: the utility: 7 4 OK 8 4 OK 9 4 OK", shed, "STORAGE_CHARGE_LEVEL 1: the utility: 7 MISSING 8 MISSING 9 MISSING", first, second, "USAGE 4: the utility: 9 2 OK", forecast}
		u.checkReports(event, "19:31", last...)

		// Late readings: what is over is reported anew in the place of what was, an hour after
		// it was due, and later.
		drawn = 2500
		last[4] = "USAGE 3: the utility: 8 2.5 OK"
		u.checkReports(event, "20:29", last...)
		last[0], last[5] = "DEMAND 1: the utility: 7 5 OK 8 5 OK 9 5 OK", "USAGE 4: the utility: 9 2.5 OK"
		u.checkReports(event, "20:31", last...)

		u.writesNothingMore(event, last)
		if err := u.adr.RemoveUpstream(t.Context(), u.mine, u.up.Program); err != nil {
			t.Fatal(err)
		}
		if err := u.db.Read(t.Context(), u.mine, func(tx *store.Tx) error {
			kept, err := tx.ADRTelemetry(t.Context(), u.up.Program)
			if len(kept) > 0 {
				t.Errorf("of a server that was removed there is still %+v", kept)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTelemetry_ClockAhead: when a report of what is over is made once more goes by the
// organisation's clock, which may be ahead of the true one.
func TestTelemetry_ClockAhead(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		u.adr.Fleet = func(_ context.Context, _ flex.OrgID, _ flex.Scope, spans []flex.Span) (uses []adr.FleetUse, err error) {
			for _, span := range spans {
				uses = append(uses, adr.FleetUse{Span: span, Energy: 2000, Quality: adr.QualityOK})
			}
			return uses, nil
		}

		err := u.db.Write(
			t.Context(),
			u.mine,
			func(tx *store.Tx) error { return tx.SetClock(t.Context(), 12*time.Hour) },
		)
		if err != nil {
			t.Fatal(err)
		}

		u.ask(u.bl, "POST", "/events", `{"programID":"`+u.program+`","intervalPeriod":{"start":"2026-01-16T05:00:00Z","duration":"PT30M"},
			"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[9]}]}],"reportDescriptors":[{"payloadType":"USAGE"}]}`, jsonForm)

		for _, poll := range []struct {
			after time.Duration // 05:00 by the organisation's clock
			again string
		}{{10 * time.Minute, ""}, {40 * time.Minute, "06:30"}, {91 * time.Minute, "11:30"}} {
			u.now = time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC).Add(poll.after)
			if _, err := u.adr.PollUpstreams(t.Context()); err != nil {
				t.Fatal(err)
			}

			var again string
			err := u.db.Read(t.Context(), u.mine, func(tx *store.Tx) error {
				sent, err := tx.ADRTelemetry(t.Context(), u.up.Program)
				if len(sent) > 0 {
					again = sent[0].AgainAt.UTC().Format("15:04")
				}
				return err
			})
			if err != nil || again != poll.again {
				t.Errorf(
					"%s after 05:00 the report is made again at %q, not %q: %v",
					poll.after,
					again,
					poll.again,
					err,
				)
			}
		}
	})
}

// writesNothingMore polls again and again: nothing is written to a server that has it all.
func (u *utility) writesNothingMore(event string, want []string) {
	u.Helper()
	writes := 0
	u.broken = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			writes++
		}
		return false
	}

	for _, clock := range []string{"20:33", "20:34", "20:45"} {
		u.checkReports(event, clock, want...)
	}
	u.broken = nil
	if writes > 0 {
		u.Errorf("%d requests wrote what the utility has", writes)
	}
}

// TestTelemetry_PerAsset: a server that is to have it so has what each asset draws by itself,
// by the assets' ids, where its event asks for no aggregate; any other has the program's scope
// as a whole.
func TestTelemetry_PerAsset(t *testing.T) {
	for _, perAsset := range []bool{false, true} {
		storetest.EachURL(t, func(t *testing.T, url string) {
			u := newUtilityWith(t, url, perAsset)
			u.adr.Fleet = func(_ context.Context, _ flex.OrgID, _ flex.Scope, spans []flex.Span) (uses []adr.FleetUse, err error) {
				for _, span := range spans {
					uses = append(uses, adr.FleetUse{Span: span, Energy: 3000, Quality: adr.QualityOK})
				}
				return uses, nil
			}

			assets := 2
			u.adr.Assets = func(_ context.Context, org flex.OrgID, scope flex.Scope, spans []flex.Span) (all []adr.AssetUse, err error) {
				if org != u.mine || scope != (flex.Scope{Group: "feeder"}) || !perAsset {
					t.Errorf("asked for the assets of %v of %v", scope, org)
				}

				for n := range assets {
					one := adr.AssetUse{Asset: flex.AssetID{15: byte(n + 1)}}
					for _, span := range spans {
						one.Uses = append(one.Uses, adr.FleetUse{Span: span, Energy: flex.WattHours(1000 * (n + 1)), Quality: adr.QualityOK})
					}
					all = append(all, one)
				}
				return all, nil
			}

			event := u.ask(u.bl, "POST", "/events", `{"programID":"`+u.program+`","intervalPeriod":{"start":"2026-01-15T18:00:00Z","duration":"PT30M"},
				"intervals":[{"id":7,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[9]}]}],"reportDescriptors":[
				{"payloadType":"USAGE"},{"payloadType":"USAGE","aggregate":true},{"payloadType":"BASELINE"}]}`, jsonForm).field("id")
			baseline, sum := "BASELINE 1: the utility: 7 MISSING", "USAGE 1: AGGREGATED_REPORT: 7 3 OK"
			whole := "USAGE 1: the utility: 7 3 OK"
			u.checkReports(event, "18:00")
			if !perAsset {
				u.checkReports(event, "18:31", baseline, sum, whole)
				return
			}

			u.checkReports(
				event,
				"18:31",
				baseline,
				"USAGE 1: 00000000-0000-0000-0000-000000000001: 7 1 OK 00000000-0000-0000-0000-000000000002: 7 2 OK",
				sum,
			)
			assets = 501 // more than are reported by themselves
			u.checkReports(event, "19:32", baseline, sum, whole)
		})
	}
}
