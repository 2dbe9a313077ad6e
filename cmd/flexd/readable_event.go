package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"flexd/internal/flex"
)

// eventStatement is what a client stated in an event of an asset, as package store records it.
type eventStatement struct {
	Intent *struct {
		Need          int64
		ReadyBy       time.Time
		ReadyByOffset time.Duration
		ReadyByLocal  *flex.WallTime
		MayChargePeak bool
		Mode          string
	} `json:"intent"`
	Tariff *struct{ OffPeak, Zone, Type string } `json:"tariff"`

	VehicleRate int64                         `json:"vehicle_w"`
	EndAt       time.Time                     `json:"end_at"`
	Blocks      []struct{ Start, End string } `json:"blocks"`
	Pause       *struct{ From, To time.Time } `json:"pause"`
}

// eventText returns the record of an event in readable form, or unchanged if it has another
// form.
func eventText(record string) string {
	var e eventStatement
	if err := json.Unmarshal([]byte(record), &e); err != nil {
		return record
	}

	parts := e.requestTexts()
	if e.VehicleRate > 0 {
		parts = append(parts, fmt.Sprintf("the car takes %.3f kW", float64(e.VehicleRate)/1000))
	}
	if !e.EndAt.IsZero() {
		parts = append(parts, "until "+e.EndAt.UTC().Format(time.RFC3339))
	}

	for _, b := range e.Blocks {
		parts = append(parts, "charging from "+b.Start+" to "+b.End)
	}
	if p := e.Pause; p != nil && !p.From.IsZero() {
		parts = append(parts, "paused from "+p.From.UTC().Format(time.RFC3339)+" to "+p.To.UTC().Format(time.RFC3339))
	}

	if len(parts) == 0 {
		return record
	}

	return strings.Join(parts, "; ")
}

// requestTexts describes the need and the tariff that an event stated.
func (e *eventStatement) requestTexts() []string {
	var parts []string
	if in := e.Intent; in != nil {
		ready := in.ReadyBy.In(time.FixedZone("", int(in.ReadyByOffset/time.Second))).Format(time.TimeOnly)
		if in.ReadyByLocal != nil {
			ready = in.ReadyByLocal.String()
		}

		parts = append(parts, fmt.Sprintf("%.3f kWh by %s", float64(in.Need)/1000, ready), "mode "+in.Mode)
		if in.MayChargePeak {
			parts = append(parts, "at peak times too if need be")
		}
	}

	if t := e.Tariff; t != nil && t.OffPeak == "" {
		parts = append(parts, "no off-peak hours")
	} else if t != nil {
		parts = append(parts, "off-peak "+t.OffPeak+" "+t.Zone)
	}

	return parts
}
