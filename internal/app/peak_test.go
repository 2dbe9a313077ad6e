package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestPeak_FromEventToMoney has an OpenADR event ask a street for less from 20:00 to 21:00, at
// a price: it becomes an instruction, schedules, what the meters say, and money at that price.
// Two chargers are at one site, and the readings of one come late.
func TestPeak_FromEventToMoney(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer endpoint.Close()

		// 15 January 2026 is a Thursday; in London it is UTC.
		s := openClocked(t, url, time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC), endpoint.URL)
		defer s.app.Close()
		home := s.Site(flex.FullScheduleMethod)
		pair := []flex.AssetID{s.Asset(home, flex.Charger, 7400), s.Asset(home, flex.Charger, 7400)}
		s.Consent(time.UnixMicro(2))
		s.meterEvenings(pair, 20)

		program := s.dispatch(flex.ADRProgram, `{"programName":"peak"}`)
		s.must(nil, nil, second(s.app.ADR.Bind(t.Context(), s.Org, &flex.ADRBinding{Program: program, Service: "dfs", Price: flex.FromGBPPerMWh(3000)}, true)))
		for _, car := range pair {
			err := s.app.Control.Event(t.Context(), s.Org, car, control.Event{Kind: control.PlugIn,
				Intent: &flex.Intent{Need: 29_600, ReadyBy: s.at.Add(6 * time.Hour), Mode: flex.Minimise}})
			s.must(nil, nil, err)
		}
		s.advance(s.at.Add(10*time.Minute), time.Hour)
		s.dispatch(flex.ADREvent, fmt.Sprintf(`{"programID":%q,"intervalPeriod":{"start":"2026-01-15T20:00:00Z","duration":"PT1H"},
			"intervals":[{"id":0,"payloads":[{"type":"DISPATCH_SETPOINT_RELATIVE","values":[-14.8]}]}]}`, program))
		s.advance(s.at.Add(10*time.Minute), time.Hour)

		page, err := s.app.Control.Instructions(t.Context(), s.Org, flex.InstructionID{}, 10)
		if err != nil || len(page.Instructions) != 1 || page.Instructions[0].Price != flex.FromGBPPerMWh(3000) {
			t.Fatalf("instructions: %+v, %v", page, err)
		}
		id := page.Instructions[0].ID
		s.advance(time.Date(2026, 1, 15, 23, 10, 0, 0, time.UTC), time.Hour)
		for _, car := range pair {
			s.must(nil, nil, s.app.Control.Event(t.Context(), s.Org, car, control.Event{Kind: control.PlugOut}))
		}
		s.advance(s.at.Add(time.Hour), time.Hour)

		// The cars did nothing from 20:00 to 21:00; one meter is read, and the other later.
		day := flex.Day{Year: 2026, Month: time.January, Dom: 15}
		s.meter(pair[0], day, 41, 42, 0)
		s.advance(s.at.Add(time.Hour), time.Hour)
		if got := s.settled(id); got.Found == 0 || got.Waiting == 0 {
			t.Errorf("with one meter read: %+v", got)
		}
		s.meter(pair[1], day, 41, 42, 0)
		s.advance(s.at.Add(time.Hour), time.Hour)

		// 2 x 7.4 kWh less, at £3 a kWh: the household has half of it.
		got := s.settled(id)
		want := flex.InstructedEvents{Found: 2, Waiting: 0, Flex: -14_800, Revenue: 44_400_000}
		if got.Flex != want.Flex || got.Revenue != want.Revenue || got.Found != want.Found {
			t.Errorf("settled %+v, want %+v", got, want)
		}
		report, err := s.app.Control.ReportInstruction(t.Context(), s.Org, id)
		if err != nil || report.Settled != got {
			t.Errorf("reported %+v, %v", report.Settled, err)
		}
		s.pricedBy(home, id)
	})
}

// meterEvenings has chargers draw what they can in each half-hour of the evenings before.
func (s *clocked) meterEvenings(chargers []flex.AssetID, days int) {
	s.Helper()
	for back := 1; back <= days; back++ {
		for _, c := range chargers {
			s.meter(c, flex.DayAt(s.at).Add(-back), 35, 48, 3_700_000)
		}
	}
}

// meter keeps a charger's readings of some settlement periods of a day.
func (s *clocked) meter(charger flex.AssetID, day flex.Day, first, last int, value flex.Micro) {
	s.Helper()
	s.write(func(tx *store.Tx) error {
		var rs []flex.Reading
		for n := first; n <= last; n++ {
			rs = append(rs, flex.Reading{AssetID: charger, Span: day.Period(n).Span(), Label: flex.ChargerEnergy, Value: value})
		}
		return tx.PutReadings(s.T.Context(), rs)
	})
}

// dispatch writes an object as the dispatcher's business logic does.
func (s *clocked) dispatch(kind flex.ADRKind, document string) flex.ADRObjectID {
	s.Helper()
	var read any
	if err := json.Unmarshal([]byte(document), &read); err != nil {
		s.Fatal(err)
	}

	o, err := s.app.ADR.Create(s.T.Context(), adr.Client{Org: s.Org, ID: "bl", Business: true}, kind, read)
	if err != nil {
		s.Fatal(err)
	}

	return o.ID
}

func (s *clocked) settled(id flex.InstructionID) (got flex.InstructedEvents) {
	s.Helper()
	err := s.app.DB.Read(s.T.Context(), s.Org, func(tx *store.Tx) (err error) {
		got, err = tx.InstructedEvents(context.WithoutCancel(s.T.Context()), id)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}

	return got
}

// pricedBy holds that an instruction is named at the prices of a site's events, and what was
// credited.
func (s *clocked) pricedBy(site flex.SiteID, id flex.InstructionID) {
	s.Helper()
	events, prices, err := s.app.Reward.FlexEvents(s.T.Context(), s.Org, site)
	if err != nil {
		s.Fatal(err)
	}

	named := 0
	for _, e := range events {
		for _, p := range prices[e.ID] {
			if p.Instruction == id && p.Source == settle.InstructedSource {
				named++
			}
		}
	}

	if named != 2 {
		s.Errorf("%d of %d events name the instruction", named, len(events))
	}
}
