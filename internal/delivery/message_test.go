package delivery

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/wire"
)

// TestRender_IsWhatTheDocumentSays holds every message that is sent, in every form that an
// endpoint can ask for, against the webhooks of the document, and a schedule against the
// published schema of a SetChargingProfile request as well.
func TestRender_IsWhatTheDocumentSays(t *testing.T) {
	load := func(path string) *openapi3.T {
		doc, err := openapi3.NewLoader().LoadFromFile(path)
		if err != nil {
			t.Fatal(err)
		}

		return doc
	}

	doc := load("../api/openapi.yaml")
	published := load("../wire/testdata/published-1.4.6.openapi.json")

	asset := flex.AssetID(uuid.New())
	from := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	night := []flex.Step{
		{Span: flex.Span{From: from, To: from.Add(2 * time.Hour)}},
		{Span: flex.Span{From: from.Add(2 * time.Hour), To: from.Add(9 * time.Hour)}, Limit: 7400},
	}

	schedule := store.ClaimedPush{Push: store.Push{Kind: store.SchedulePush, AssetID: asset}, Schedule: &flex.Schedule{Steps: night}}
	giving := store.ClaimedPush{Push: schedule.Push, Schedule: &flex.Schedule{Steps: night, Discharges: []flex.Step{
		{Span: flex.Span{From: from.Add(flex.HalfHour), To: from.Add(time.Hour)}, Limit: 5000},
	}}}
	dispatch := store.ClaimedPush{Push: store.Push{Kind: store.DispatchPush}, Dispatch: &store.Dispatch{
		ID: flex.EventID(uuid.New()), Market: "dno", IssuedAt: from, Span: flex.Span{From: from, To: from.Add(flex.HalfHour)},
		Assets: []store.DispatchedAsset{{ID: asset, Power: -2000}},
	}}

	invitation := store.ClaimedPush{Push: store.Push{Kind: store.InvitationPush}, Invitation: testInvitation(&store.ClaimedPush{QueuedAt: from})}
	invitation.Invitation.ExternalUserID = "home-7"

	batch := dispatch
	batch.Dispatch = &store.Dispatch{}
	*batch.Dispatch = *dispatch.Dispatch
	batch.Dispatch.Batch = true

	for name, c := range map[string]struct {
		push     store.ClaimedPush
		endpoint flex.Endpoint
		webhook  string
	}{
		"schedule":        {schedule, flex.Endpoint{}, "schedule"},
		"giving":          {giving, flex.Endpoint{Discharge: flex.NegativeLimits}, "schedule"},
		"schedule bare":   {schedule, flex.Endpoint{Bare: true}, "scheduleBare"},
		"test":            {store.ClaimedPush{Push: store.Push{Kind: store.TestPush, To: flex.ScheduleEndpoint}, QueuedAt: from}, flex.Endpoint{}, "schedule"},
		"dispatch":        {dispatch, flex.Endpoint{}, "dispatch"},
		"batch":           {batch, flex.Endpoint{Batch: true}, "dispatchBatch"},
		"dispatch test":   {store.ClaimedPush{Push: store.Push{Kind: store.TestPush, To: flex.DispatchEndpoint}, QueuedAt: from}, flex.Endpoint{}, "dispatch"},
		"batch test":      {store.ClaimedPush{Push: store.Push{Kind: store.TestPush, To: flex.DispatchEndpoint}, QueuedAt: from}, flex.Endpoint{Batch: true}, "dispatchBatch"},
		"invitation":      {invitation, flex.Endpoint{}, "invitation"},
		"invitation test": {store.ClaimedPush{Push: store.Push{Kind: store.TestPush, To: flex.InvitationEndpoint}, QueuedAt: from}, flex.Endpoint{}, "invitation"},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := render(&c.endpoint, &c.push, "https://flexd.example")
			if err != nil {
				t.Fatal(err)
			}

			var sent any
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Fatal(err)
			}

			schema := doc.Webhooks[c.webhook].Post.RequestBody.Value.Content["application/json"].Schema.Value
			if err := schema.VisitJSON(sent, openapi3.EnableFormatValidation()); err != nil {
				t.Errorf("%s\n%v", body, err)
			}

			if c.webhook != "schedule" {
				return
			}

			if err := published.Components.Schemas["SetChargingProfileRequest"].Value.VisitJSON(sent); err != nil {
				t.Errorf("by the published schema: %s\n%v", body, err)
			}
		})
	}

	t.Run("with nulls it is what strict libraries refuse", func(t *testing.T) {
		body, err := render(&flex.Endpoint{Nulls: true}, &schedule, "")
		if err != nil {
			t.Fatal(err)
		}

		var sent any
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}

		if err := published.Components.Schemas["SetChargingProfileRequest"].Value.VisitJSON(sent); err == nil {
			t.Errorf("the published schema takes %s", body)
		}
	})
}

// TestRender_Giving has an endpoint that says so get what a car gives as limits below zero,
// and any other the schedule that charges alone.
func TestRender_Giving(t *testing.T) {
	from := time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC) // the clocks go back an hour later
	p := store.ClaimedPush{Push: store.Push{Kind: store.SchedulePush}, Schedule: &flex.Schedule{
		Steps:      []flex.Step{{Span: flex.Span{From: from, To: from.Add(4 * time.Hour)}}, {Span: flex.Span{From: from.Add(4 * time.Hour), To: from.Add(6 * time.Hour)}, Limit: flex.NoLimit}},
		Discharges: []flex.Step{{Span: flex.Span{From: from, To: from.Add(2 * time.Hour)}, Limit: 5000}},
	}}

	for form, want := range map[flex.DischargeForm]string{
		flex.NegativeLimits: `[{"startPeriod":0,"limit":-5000.0,"numberPhases":1},{"startPeriod":7200,"limit":0.0,"numberPhases":1},{"startPeriod":14400,"limit":99999.0,"numberPhases":1}]`,
		flex.NoDischarge:    `[{"startPeriod":0,"limit":0.0,"numberPhases":1},{"startPeriod":14400,"limit":99999.0,"numberPhases":1}]`,
	} {
		body, err := render(&flex.Endpoint{Discharge: form}, &p, "")
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%q: %v\n%s\nlacks %s", form, err, body, want)
		}
	}
}

// TestRender_Phases: each period names the phases that the schedule was made for, and 1 where
// nobody gave them.
func TestRender_Phases(t *testing.T) {
	from := time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC)
	for phases, want := range map[int]string{
		0: `[{"startPeriod":0,"limit":0.0,"numberPhases":1},{"startPeriod":3600,"limit":99999.0,"numberPhases":1}]`,
		3: `[{"startPeriod":0,"limit":0.0,"numberPhases":3},{"startPeriod":3600,"limit":99999.0,"numberPhases":3}]`,
	} {
		p := store.ClaimedPush{Push: store.Push{Kind: store.SchedulePush}, Schedule: &flex.Schedule{
			Steps: []flex.Step{
				{Span: flex.Span{From: from, To: from.Add(time.Hour)}},
				{Span: flex.Span{From: from.Add(time.Hour), To: from.Add(2 * time.Hour)}, Limit: flex.NoLimit},
			},
			Phases: phases,
		}}

		body, err := render(&flex.Endpoint{}, &p, "")
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%d: %v\n%s\nlacks %s", phases, err, body, want)
		}
	}
}

// TestScheduled_SteersEachStep: each step of a heat pump's schedule is pushed with its own
// state or offset, also where the one before has the same limit, as all have by offsets and
// those of states 2 to 4.
func TestScheduled_SteersEachStep(t *testing.T) {
	type steered struct {
		limits  []flex.Watts
		signals []int
	}

	from := time.Date(2026, 1, 13, 17, 0, 0, 0, time.UTC)
	for steering, c := range map[flex.Steering]steered{
		flex.SteerSGReady: {[]flex.Watts{0, 3000, 3000, 0, 3000}, []int{1, 2, 3, 1, 2}},
		flex.SteerOffset:  {[]flex.Watts{3000, 3000, 3000}, []int{-3, 2, 0}},
	} {
		s := &flex.Schedule{Heat: &flex.HeatSignals{Steering: steering, Signals: c.signals}}
		for i, limit := range c.limits {
			at := from.Add(time.Duration(i) * flex.HalfHour)
			s.Steps = append(s.Steps, flex.Step{Span: flex.Span{From: at, To: at.Add(flex.HalfHour)}, Limit: limit})
		}

		body, err := scheduleBody(&flex.Endpoint{}, flex.AssetID{}, s)
		if err != nil {
			t.Fatal(err)
		}

		var push wire.SetChargingProfileRequest
		if err := json.Unmarshal(body, &push); err != nil {
			t.Fatal(err)
		}

		if n := len(push.CSChargingProfiles.ChargingSchedule.ChargingSchedulePeriod); n != len(c.limits) || len(push.Heat.Periods) != n {
			t.Fatalf("%s: %d periods and %d of heat, of %d steps", steering, n, len(push.Heat.Periods), len(c.limits))
		}

		for i, limit := range c.limits {
			p := push.CSChargingProfiles.ChargingSchedule.ChargingSchedulePeriod[i]
			h := push.Heat.Periods[i]
			signal := cmp.Or(h.SGReadyState, h.OffsetK)
			start := i * 1800
			if p.StartPeriod != start || h.StartPeriod != start || p.Limit != float64(limit) || *signal != c.signals[i] {
				t.Errorf("%s, step %d: limit %v from %d, %d from %d", steering, i, p.Limit, p.StartPeriod, *signal, h.StartPeriod)
			}
		}
	}
}
