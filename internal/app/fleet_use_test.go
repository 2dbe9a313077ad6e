package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// TestFleetUse: what two cars use and can change, ahead and afterwards, as it is
// reported to a utility that asks for reports. Each needs two hours of 7.4 kW by 23:00, in hours that are all alike.
func TestFleetUse(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer endpoint.Close()
		s := openClocked(t, url, time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC), endpoint.URL)
		defer s.app.Close()
		s.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, s.battery.Bytes()) // it would be counted beside the cars
		home := s.Site(flex.FullScheduleMethod)
		for range 2 {
			err := s.app.Control.Event(t.Context(), s.Org, s.Asset(home, flex.Charger, 7400), control.Event{Kind: control.PlugIn,
				Intent: &flex.Intent{Need: 14_800, ReadyBy: s.at.Add(6 * time.Hour), Mode: flex.Minimise}})
			s.must(nil, nil, err)
		}
		s.advance(s.at.Add(10*time.Minute), time.Hour)

		at := func(from, to int) flex.Span {
			day := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
			return flex.Span{From: day.Add(time.Duration(from) * time.Minute), To: day.Add(time.Duration(to) * time.Minute)}
		}
		const five, ten, eleven = 17 * 60, 22 * 60, 23 * 60
		uses := func(spans ...flex.Span) []adr.FleetUse {
			found, err := s.app.fleetUse(t.Context(), s.Org, flex.Scope{}, spans)
			s.must(nil, nil, err)
			return found
		}

		each := func(quality string, spans ...flex.Span) {
			t.Helper()
			found, err := s.app.assetUse(t.Context(), s.Org, flex.Scope{}, spans)
			s.must(nil, nil, err)
			if len(found) != 2 || found[0].Asset == found[1].Asset {
				t.Fatalf("of %d assets", len(found))
			}

			for i, sum := range uses(spans...) {
				a, b := found[0].Uses[i], found[1].Uses[i]
				if a.Energy+b.Energy != sum.Energy || a.IsFuture != sum.IsFuture || a.Span != spans[i] || a.Quality != quality {
					t.Errorf("%v: %+v and %+v, in all %+v", spans[i], a, b, sum)
				}
			}
		}
		each(adr.QualityEstimated, at(five, eleven), at(ten, eleven))

		ahead := uses(at(five, eleven), at(ten, eleven), at(ten+5, ten+20), at(five, five+3*1440), at(16*60, five))
		whole := ahead[0]
		if whole.Energy != 29_600 || whole.Reducible != 0 || whole.More != 0 || !whole.From.Equal(s.at) || whole.Quality != adr.QualityOK || !whole.IsFuture {
			t.Errorf("until ready-by: %+v", whole)
		}
		hour := ahead[1]
		if hour.Energy+hour.More != 14_800 || hour.Energy != hour.Reducible || hour.Quality != adr.QualityOK {
			t.Errorf("the last hour, which can be left out and can be used in full: %+v", hour)
		}

		if quarter := ahead[2]; quarter.Quality != adr.QualityEstimated || quarter.Energy+quarter.More != 3700 {
			t.Errorf("a quarter of an hour: %+v", quarter)
		}
		if ahead[3].Quality != adr.QualityMissing {
			t.Errorf("in three days: %+v", ahead[3])
		}
		if ahead[4] != (adr.FleetUse{Span: at(16*60, five), Quality: adr.QualityOK}) {
			t.Errorf("before they came: %+v", ahead[4])
		}

		s.advance(time.Date(2026, 1, 15, 23, 10, 0, 0, time.UTC), time.Hour)
		if past := uses(at(five, eleven))[0]; past.IsFuture || past.Energy != 29_600 || past.Quality != adr.QualityEstimated {
			t.Errorf("by plan, as no meter was read: %+v", past)
		}
		each(adr.QualityEstimated, at(five, eleven), at(ten, eleven))
	})
}
