package api

import (
	"time"

	"github.com/google/uuid"

	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/wire"
)

// The asset, the event, the evening and the night of the examples.
var (
	exampleAsset   = flex.AssetID(uuid.MustParse("b2c3d4e5-f6a7-8901-bcde-f23456789012"))
	exampleEvent   = flex.EventID(uuid.MustParse("0b6c1f0e-7a44-4a0c-9a52-0d6b7e1c2f33"))
	exampleEvening = time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	exampleNight   = time.Date(2026, 4, 14, 22, 0, 0, 0, time.UTC)
)

// exampleDispatchEvent answers GET /examples/dispatch-event.
func (s *Server) exampleDispatchEvent(r *request) (answer, error) {
	issued := wire.At(exampleEvening.Add(-6*time.Hour - 50*time.Minute))
	return ok(wire.DispatchEvent{
		AssetID:         exampleAsset,
		EventID:         exampleEvent,
		IssuedTimestamp: issued,
		EventTimestamp:  issued,
		MarketID:        "dno",
		LevelKW:         -2,
		FromTime:        wire.At(exampleEvening),
		ToTime:          wire.At(exampleEvening.Add(flex.HalfHour)),
		UpdateStatusCallback: s.base(r) + "/entities/asset/" +
			exampleAsset.String() + "/callback/" + exampleEvent.String(),
	}), nil
}

// exampleChargingProfile answers GET /examples/ocpp-charging-profile: a car that plugs in at
// 22:00, is ready by 07:00 and charges in the off-peak hours between. It is what is pushed
// for such a night, byte for byte.
func (s *Server) exampleChargingProfile(*request) (answer, error) {
	cheap := exampleNight.Add(90 * time.Minute)
	peak := exampleNight.Add(450 * time.Minute)
	ready := exampleNight.Add(9 * time.Hour)
	p, err := ocpp.New(exampleAsset, []flex.Step{
		{Span: flex.Span{From: exampleNight, To: cheap}},
		{Span: flex.Span{From: cheap, To: peak}, Limit: flex.NoLimit},
		{Span: flex.Span{From: peak, To: ready}},
	})
	if err != nil {
		return answer{}, err
	}

	a := ok(text(p.Message(1, ocpp.Form{})))
	a.set("Content-Type", "application/json")

	return a, nil
}

// base is the address under which clients reach flexd: the configured one, or that
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
