package api

import (
	"time"

	"github.com/google/uuid"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// The asset, the event and the evening of the examples.
var (
	exampleAsset   = flex.AssetID(uuid.MustParse("b2c3d4e5-f6a7-8901-bcde-f23456789012"))
	exampleEvent   = flex.EventID(uuid.MustParse("0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33"))
	exampleEvening = time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
)

// exampleDispatchEvent answers GET /examples/dispatch-event.
func (s *Server) exampleDispatchEvent(r *request) (answer, error) {
	issued := wire.At(exampleEvening.Add(-6*time.Hour - 50*time.Minute))
	return ok(wire.DispatchEvent{
		AssetID: exampleAsset, EventID: exampleEvent, IssuedTimestamp: issued, EventTimestamp: issued,
		MarketID: "dno", LevelKW: -2, FromTime: wire.At(exampleEvening), ToTime: wire.At(exampleEvening.Add(flex.HalfHour)),
		UpdateStatusCallback: s.base(r) + "/entities/asset/" + exampleAsset.String() + "/callback/" + exampleEvent.String(),
	}), nil
}

// exampleChargingProfile answers GET /examples/ocpp-charging-profile: a car that plugs in at
// 22:00, is ready by 07:00 and charges in the off-peak hours between.
func (s *Server) exampleChargingProfile(*request) (answer, error) {
	const stackLevel, hour = 1100, 3600
	return ok(wire.SetChargingProfileRequest{
		ConnectorID: 1,
		CSChargingProfiles: wire.ChargingProfile{
			ChargingProfileID: 1, StackLevel: stackLevel, ChargingProfilePurpose: "TxProfile", ChargingProfileKind: "Absolute",
			ChargingSchedule: wire.ChargingSchedule{
				Duration: new(9 * hour), StartSchedule: wire.At(exampleEvening.Add(5 * time.Hour)), ChargingRateUnit: "W",
				ChargingSchedulePeriod: []wire.ChargingSchedulePeriod{
					{StartPeriod: 0, Limit: 0, NumberPhases: 1},
					{StartPeriod: 5400, Limit: float64(flex.NoLimit), NumberPhases: 1},
					{StartPeriod: 27000, Limit: 0, NumberPhases: 1},
				},
				MinChargingRate: new(0.0),
			},
		},
	}), nil
}

// base is the address under which clients reach flexd: the one that it was told, or the one
// of this request.
func (s *Server) base(r *request) string {
	if s.PublicURL != "" {
		return s.PublicURL
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
