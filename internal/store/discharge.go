package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

// CarDischarge is the kind of consent to discharge a site's cars.
const CarDischarge = "car discharge"

// Discharge is what a schedule was made from of a car that may discharge, and when it does.
type Discharge struct {
	Power    flex.Watts
	Capacity flex.WattHours
	Reserve  flex.WattHours
	Wear     float64 // pence for each kWh given
	// what its battery held when the plan was made, and what it is to hold by ready-by
	Stored flex.WattHours
	Target flex.WattHours
	ReadAt time.Time      // when that was read
	Held   flex.WattHours // what it would hold if it had given nothing since then; 0: not noted
	Again  flex.WattHours // of the need, because of what it may have given before
	// why it does not discharge; empty if it may
	Why string
	// the power that it discharges, in the time that the schedule leaves it without charge
	Discharges []flex.Step
	// what that is worth to the household, in pence, and why each part of it is done
	Saves float64
	Parts []DischargedPart
	// of a fixed tariff, what a kWh was taken to cost and earn, and where each was from
	Rates []RateUsed
}

// RateUsed is one rate by which a schedule was made.
type RateUsed struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // pence a kWh
	Origin string `json:"origin"`
	Detail string `json:"detail,omitempty"`
}

// DischargedPart is what a car discharges in one half-hour: at which price, and at which it is bought back.
type DischargedPart struct {
	From   time.Time
	Energy flex.WattHours
	Price  float64 // pence a kWh
	Back   float64
}

// dischargeRecord is asset.discharge.
type dischargeRecord struct {
	Power   int64    `json:"power_w,omitempty"`
	Reserve *int64   `json:"reserve_wh,omitempty"`
	Percent *float64 `json:"reserve_pct,omitempty"`
	Wear    *float64 `json:"wear_p,omitempty"`
}

// encodeDischarge writes what was given of how a car may discharge; nothing is null.
func encodeDischarge(d *flex.Discharge) any {
	if !d.Known() {
		return nil
	}

	r := dischargeRecord{
		Power:   int64(d.Power),
		Percent: d.ReservePercent,
		Wear:    d.Wear,
	}

	if d.Reserve != nil {
		r.Reserve = new(int64(*d.Reserve))
	}

	text, err := encode(r)
	if err != nil { // a struct of numbers
		panic(err)
	}

	return text
}

// dischargeText reads what encodeDischarge wrote.
type dischargeText struct{ to *flex.Discharge }

// Scan reads a column.
func (t dischargeText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil || !text.Valid {
		return err
	}

	var r dischargeRecord
	if err := decode("discharge of a car", text.String, &r); err != nil {
		return err
	}

	*t.to = flex.Discharge{
		Power:          flex.Watts(r.Power),
		ReservePercent: r.Percent,
		Wear:           r.Wear,
	}

	if r.Reserve != nil {
		t.to.Reserve = new(flex.WattHours(*r.Reserve))
	}

	return nil
}

// dischargesRecord is schedule.discharge.
type dischargesRecord struct {
	Power      int64        `json:"power_w"`
	Capacity   int64        `json:"capacity_wh"`
	Reserve    int64        `json:"reserve_wh"`
	Wear       float64      `json:"wear_p"`
	Stored     int64        `json:"stored_wh"`
	Target     int64        `json:"target_wh"`
	ReadAt     int64        `json:"read_at,omitempty"` // in seconds
	Held       int64        `json:"held_wh,omitempty"`
	Again      int64        `json:"again_wh,omitempty"`
	Why        string       `json:"why,omitempty"`
	Discharges [][3]int64   `json:"gives,omitempty"` // from and to in seconds, watts
	Saves      float64      `json:"saves_p,omitempty"`
	Parts      []partRecord `json:"parts,omitempty"`
	Rates      []RateUsed   `json:"rates,omitempty"`

	// of a car that was said to discharge and lacks something: the rest is then of no car
	ChargesOnly string `json:"charges_only,omitempty"`
}

type partRecord struct {
	From   int64   `json:"from"` // in seconds
	Energy int64   `json:"energy_wh"`
	Price  float64 `json:"price_p"`
	Back   float64 `json:"back_p"`
}

// ChargedAlone is the same of a schedule by which the car discharges nothing; nil of nil.
func (d *Discharge) ChargedAlone() *Discharge {
	if d == nil {
		return nil
	}

	alone := *d
	alone.Discharges = nil
	alone.Parts = nil
	alone.Saves = 0

	return &alone
}

// encodeDischarges writes what a schedule was made from of a car that may discharge; nothing is null.
func encodeDischarges(e *PlanInputs) any {
	d := e.Discharge

	if d == nil {
		return encodeChargesOnly(e.ChargesOnly)
	}

	r := dischargesRecord{
		Power:    int64(d.Power),
		Capacity: int64(d.Capacity),
		Reserve:  int64(d.Reserve),
		Wear:     d.Wear,
		Rates:    d.Rates,
		Stored:   int64(d.Stored),
		Target:   int64(d.Target),
		Held:     int64(d.Held),
		Again:    int64(d.Again),
		Why:      d.Why,
		Saves:    d.Saves,
	}

	if !d.ReadAt.IsZero() {
		r.ReadAt = d.ReadAt.Unix()
	}

	for _, s := range d.Discharges {
		r.Discharges = append(r.Discharges, [3]int64{
			s.From.Unix(),
			s.To.Unix(),
			int64(s.Limit),
		})
	}

	for _, p := range d.Parts {
		r.Parts = append(r.Parts, partRecord{
			From:   p.From.Unix(),
			Energy: int64(p.Energy),
			Price:  p.Price,
			Back:   p.Back,
		})
	}

	text, err := encode(r)
	if err != nil { // a struct of numbers
		panic(err)
	}

	return text
}

// encodeChargesOnly writes what a car that was said to discharge lacks; nothing is null.
func encodeChargesOnly(why string) any {
	if why == "" {
		return nil
	}

	text, err := encode(dischargesRecord{ChargesOnly: why})
	if err != nil { // a struct of numbers and texts
		panic(err)
	}

	return text
}

// dischargesText reads what encodeDischarges wrote.
type dischargesText struct {
	to   **Discharge
	only *string // what a car lacks that was said to discharge; nil if that is not asked
}

// Scan reads a column.
func (t dischargesText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil || !text.Valid {
		return err
	}

	var r dischargesRecord
	if err := decode("discharge of a schedule", text.String, &r); err != nil {
		return err
	}

	if r.ChargesOnly == "" {
		*t.to = r.discharge()
	} else if t.only != nil {
		*t.only = r.ChargesOnly
	}

	return nil
}

// discharge is what the record says.
func (r *dischargesRecord) discharge() *Discharge {
	d := &Discharge{
		Power:    flex.Watts(r.Power),
		Capacity: flex.WattHours(r.Capacity),
		Reserve:  flex.WattHours(r.Reserve),
		Wear:     r.Wear,
		Rates:    r.Rates,
		Stored:   flex.WattHours(r.Stored),
		Target:   flex.WattHours(r.Target),
		Held:     flex.WattHours(r.Held),
		Again:    flex.WattHours(r.Again),
		Why:      r.Why,
		Saves:    r.Saves,
	}

	if r.ReadAt != 0 {
		d.ReadAt = secondsAt(r.ReadAt)
	}

	for _, g := range r.Discharges {
		d.Discharges = append(d.Discharges, flex.Step{
			Span:  flex.Span{From: secondsAt(g[0]), To: secondsAt(g[1])},
			Limit: flex.Watts(g[2]),
		})
	}

	for _, p := range r.Parts {
		d.Parts = append(d.Parts, DischargedPart{
			From:   secondsAt(p.From),
			Energy: flex.WattHours(p.Energy),
			Price:  p.Price,
			Back:   p.Back,
		})
	}

	return d
}

// secondsAt is the instant that is a number of seconds after the beginning of 1970.
func secondsAt(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// SetDischargeConsent records that the consent to discharge a site's cars was given, at an instant, or
// withdrawn: the zero time. What is plugged in there is planned again.
func (tx *Tx) SetDischargeConsent(
	ctx context.Context,
	site flex.SiteID,
	at time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE site SET discharge_consent_at = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(at),
	)
	if err != nil {
		return err
	}

	if err := tx.addConsent(ctx, site, CarDischarge, at); err != nil {
		return err
	}

	// a page of sites shows it
	if err := tx.touchRegister(ctx); err != nil {
		return err
	}

	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(assets))

	for i := range assets {
		ids[i] = assets[i].ID
	}

	return tx.MarkDue(ctx, ids...)
}

// MarkAllDischarging is MarkDue for all whose cars were said to be discharged.
func (tx *Tx) MarkAllDischarging(ctx context.Context) error {
	found, err := rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`SELECT s.asset_id FROM session s JOIN asset a ON a.id = s.asset_id
		WHERE s.org_id = $1 AND s.plugged_out_at IS NULL AND a.discharge IS NOT NULL ORDER BY s.asset_id`,
		tx.org.Bytes(),
	)
	if err != nil {
		return err
	}

	return tx.MarkDue(ctx, found...)
}

// MarkDischarging is MarkDue for those of some assets whose cars were said to be discharged.
func (tx *Tx) MarkDischarging(
	ctx context.Context,
	assets ...flex.AssetID,
) error {
	assets = inIDOrder(assets)
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), outboxChunk)]
		assets = assets[len(chunk):]

		ids, args := in([]any{tx.org.Bytes()}, chunk)
		found, err := rows(
			ctx,
			tx.conn,
			scalar[flex.AssetID],
			`SELECT id FROM asset WHERE org_id = $1 AND discharge IS NOT NULL AND id IN `+ids,
			args...,
		)
		if err != nil {
			return err
		}

		if err := tx.MarkDue(ctx, found...); err != nil {
			return err
		}
	}

	return nil
}

// discharged is what the car of a session that ends now discharged by the schedules that it followed, each until it followed a
// newer one. If its client accepted none, each counts until the next.
func (tx *Tx) discharged(
	ctx context.Context,
	session *Session,
) (flex.WattHours, error) {
	var chain []Schedule // the newest first
	for id := session.EventID; !id.IsZero(); {
		s, err := tx.Schedule(ctx, id)
		if err != nil {
			return 0, err
		}

		chain, id = append(chain, s), s.Before
	}

	since, err := tx.FollowedSince(ctx, chain)
	if err != nil || len(chain) == 0 {
		return 0, err
	}

	if len(since) == 0 {
		for i := range chain {
			since[chain[i].EventID] = chain[i].Steps[0].From
		}
	}

	sum := int64(0)
	until := session.PluggedOutAt

	for i := range chain {
		from, followed := since[chain[i].EventID]
		from = from.Truncate(time.Second)
		if !followed || from.After(until) { // a newer one was followed before it
			continue
		}

		sum += chain[i].dischargedIn(flex.Span{From: from, To: until})
		until = from
	}

	return flex.WattHours(sum / 3600), nil
}

// dischargedIn is what a schedule has its car discharge in a time, in watt-seconds.
func (s *Schedule) dischargedIn(in flex.Span) int64 {
	sum := int64(0)
	for _, g := range s.Discharges {
		seconds := max(0, g.Meet(in).Len()) / time.Second
		sum += int64(g.Limit) * int64(seconds)
	}

	return sum
}
