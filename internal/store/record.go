package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// The records of this file are what columns hold as JSON, and what sealed columns hold inside
// their seal. Every field has a tag, so that no Go name is part of what is stored, and every
// type is one of Go's own, so that no method of a domain type is either. A key that was ever
// written stays readable. TestGolden opens a database of an earlier release.

// encode writes a record.
func encode(record any) (string, error) {
	b, err := json.Marshal(record)
	return string(b), err
}

// decode reads a record; an error names it by what.
func decode(what, text string, record any) error {
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return fmt.Errorf("stored %s: %w", what, err)
	}
	return nil
}

// settingsRecord is org.settings. What is marked with "before" is dated since migration
// 125 and in the table term; a program of before reads it here.
type settingsRecord struct {
	MinWithdrawal     int64            `json:"MinWithdrawal"`     // before
	MinWaitDays       int              `json:"MinWaitDays"`       // before
	CreditPencePerKWh float64          `json:"CreditPencePerKWh"` // before
	UserShare         float64          `json:"UserShare"`         // before
	DefaultNeed       int64            `json:"DefaultNeed"`
	FleetCap          int64            `json:"FleetCap"`
	StartsPerMinute   int              `json:"StartsPerMinute"`
	Settlement        settlementRecord `json:"Settlement"` // before
	Rates             ratesRecord      `json:"Rates"`
	Books             booksRecord      `json:"Books,omitzero"`
	Payout            payoutRecord     `json:"payout,omitzero"`
	ExportLimit       *int64           `json:"export_limit_wh,omitempty"`
	OpenADR           bool             `json:"openadr,omitempty"`
	WithoutMPAN       bool             `json:"without_mpan,omitempty"`
	Page              pageRecord       `json:"page,omitzero"`
	// "TwoFactor" was written once: whether a code was asked for, which it is by default now.
}

type pageRecord struct {
	Name       string `json:"name,omitempty"`
	Colour     string `json:"colour,omitempty"`
	DarkColour string `json:"dark_colour,omitempty"`
	Email      string `json:"email,omitempty"`
	Phone      string `json:"phone,omitempty"`
	URL        string `json:"url,omitempty"`
}

type booksRecord struct {
	CloseAfterDays int    `json:"CloseAfterDays"`
	Counterparty   string `json:"Counterparty"`
	PayerName      string `json:"PayerName"`
	PayerAddress   string `json:"PayerAddress"`
	PayerContact   string `json:"PayerContact"`
	GiftLimit      int64  `json:"GiftLimit"`
	UnclaimedDays  int    `json:"UnclaimedDays"`
}

func recordBooks(b flex.BooksSettings) booksRecord {
	return booksRecord{
		CloseAfterDays: b.CloseAfterDays,
		Counterparty:   b.Counterparty,
		PayerName:      b.PayerName,
		PayerAddress:   b.PayerAddress,
		PayerContact:   b.PayerContact,
		GiftLimit:      int64(b.GiftLimit),
		UnclaimedDays:  b.UnclaimedDays,
	}
}

func (r *booksRecord) settings() flex.BooksSettings {
	return flex.BooksSettings{
		CloseAfterDays: r.CloseAfterDays,
		Counterparty:   r.Counterparty,
		PayerName:      r.PayerName,
		PayerAddress:   r.PayerAddress,
		PayerContact:   r.PayerContact,
		GiftLimit:      flex.Pence(r.GiftLimit),
		UnclaimedDays:  r.UnclaimedDays,
	}
}

type settlementRecord struct {
	Baseline   string  `json:"Baseline"`
	InDay      bool    `json:"InDay"`
	InDayCap   int64   `json:"InDayCap"`
	PaidEarly  float64 `json:"PaidEarly"`
	LossFactor float64 `json:"LossFactor"`
	Rounding   string  `json:"Rounding"`
	ClawBack   bool    `json:"ClawBack"`
}

// ratesRecord has 0 for a rate that was not given, as records always had it: one that was
// given as 0 is marked.
type ratesRecord struct {
	Peak        float64 `json:"Peak"`
	OffPeak     float64 `json:"OffPeak"`
	Export      float64 `json:"Export"`
	PeakZero    bool    `json:"PeakZero,omitempty"`
	OffPeakZero bool    `json:"OffPeakZero,omitempty"`
	ExportZero  bool    `json:"ExportZero,omitempty"`
	Wear        float64 `json:"BatteryWear,omitempty"`
	WearZero    bool    `json:"BatteryWearZero,omitempty"`
}

func recordRates(s flex.BatteryRates) ratesRecord {
	var r ratesRecord
	r.Peak, r.PeakZero = recordRate(s.Peak)
	r.OffPeak, r.OffPeakZero = recordRate(s.OffPeak)
	r.Export, r.ExportZero = recordRate(s.Export)
	r.Wear, r.WearZero = recordRate(s.BatteryWear)

	return r
}

func (r *ratesRecord) rates() flex.BatteryRates {
	return flex.BatteryRates{
		Peak:    rateGiven(r.Peak, r.PeakZero),
		OffPeak: rateGiven(r.OffPeak, r.OffPeakZero),
		Export:  rateGiven(r.Export, r.ExportZero),

		BatteryWear: rateGiven(r.Wear, r.WearZero),
	}
}

// recordRate is a rate as its record has it, and whether it was given as 0.
func recordRate(r flex.Optional[float64]) (rate float64, zero bool) {
	return r.Value, r.Given && r.Value == 0
}

// rateGiven is the rate of a record.
func rateGiven(rate float64, zero bool) flex.Optional[float64] {
	return flex.Optional[float64]{
		Value: rate,
		Given: zero || rate != 0,
	}
}

// put changes a record to what is set now; the rest stays.
func (r *settingsRecord) put(s flex.OrgSettings) {
	r.DefaultNeed = int64(s.DefaultNeed)
	r.FleetCap, r.StartsPerMinute = int64(s.FleetCap), s.StartsPerMinute
	r.Rates = recordRates(s.Rates)

	r.Books = recordBooks(s.Books)
	r.Payout = recordPayout(s.Payout)
	r.ExportLimit = recordOptional(s.ExportLimit)
	r.OpenADR, r.WithoutMPAN = s.OpenADR, s.WithoutMPAN
	r.Page = pageRecord(s.Page)
}

func (r *settingsRecord) settings() flex.OrgSettings {
	return flex.OrgSettings{
		DefaultNeed:     flex.WattHours(r.DefaultNeed),
		FleetCap:        flex.Watts(r.FleetCap),
		StartsPerMinute: r.StartsPerMinute,
		Rates:           r.Rates.rates(),

		Books:  r.Books.settings(),
		Payout: r.Payout.settings(),

		ExportLimit: optional[flex.WattHours](r.ExportLimit),
		OpenADR:     r.OpenADR,
		WithoutMPAN: r.WithoutMPAN,
		Page:        flex.PageSettings(r.Page),
	}
}

// resultRecord is settlement.result.
type resultRecord struct {
	Event      string           `json:"Event"`
	Day        dayRecord        `json:"Day"`
	Metering   string           `json:"Metering"`
	Label      string           `json:"Label,omitempty"`
	Method     string           `json:"Method"`
	Quality    string           `json:"Quality"`
	Used       []dayRecord      `json:"Used"`
	Excluded   []excludedRecord `json:"Excluded"`
	Adjusted   bool             `json:"Adjusted"`
	Adjustment int64            `json:"Adjustment"`
	Periods    []settledRecord  `json:"Periods"`
	Missing    int              `json:"Missing"`
	Final      bool             `json:"Final"`
	Flex       int64            `json:"Flex"`
	Gross      int64            `json:"Gross"`
	Credit     int64            `json:"Credit"`
	Kept       int64            `json:"Kept"`
	// what is owed beyond Credit
	Later     int64       `json:"Later,omitempty"`
	Before    int64       `json:"Before,omitempty"`
	Terms     termsRecord `json:"Terms,omitzero"`
	Consented bool        `json:"Consented,omitempty"`
}

// termsRecord are the terms by which a result was paid; results of earlier releases have none.
type termsRecord struct {
	Share      int64 `json:"Share"`
	PaidEarly  int64 `json:"PaidEarly"`
	LossFactor int64 `json:"LossFactor"`
	HalfEven   bool  `json:"HalfEven"`
	ClawBack   bool  `json:"ClawBack"`
	ByMonth    bool  `json:"ByMonth,omitempty"`
}

func recordTerms(t settle.Terms) termsRecord {
	return termsRecord{
		Share:      int64(t.Share),
		PaidEarly:  int64(t.PaidEarly),
		LossFactor: int64(t.LossFactor),
		HalfEven:   t.Rounding == settle.HalfEven,
		ClawBack:   t.ClawBack,
		ByMonth:    t.ByMonth,
	}
}

func (r *termsRecord) terms() settle.Terms {
	t := settle.Terms{
		Share:      settle.Parts(r.Share),
		PaidEarly:  settle.Parts(r.PaidEarly),
		LossFactor: settle.Parts(r.LossFactor),
		ClawBack:   r.ClawBack,
		ByMonth:    r.ByMonth,
	}

	if r.HalfEven {
		t.Rounding = settle.HalfEven
	}

	return t
}

type dayRecord struct {
	Year  int `json:"Year"`
	Month int `json:"Month"`
	Dom   int `json:"Dom"`
}

type excludedRecord struct {
	Day    dayRecord `json:"Day"`
	Reason string    `json:"Reason"`
}

type settledRecord struct {
	Period   int   `json:"Period"`
	Baseline int64 `json:"Baseline"`
	Error    int64 `json:"Error,omitempty"`
	Metered  int64 `json:"Metered"`
	Flex     int64 `json:"Flex"`
	Price    int64 `json:"Price"`
	Revenue  int64 `json:"Revenue"`
	Read     bool  `json:"Read"`
	Known    bool  `json:"Known"`

	Compared   bool  `json:"Compared,omitempty"`
	Deviation  int64 `json:"Deviation,omitempty"`
	Unassigned int64 `json:"Unassigned,omitempty"`

	Device      string `json:"Device,omitempty"`
	Source      string `json:"Source,omitempty"`
	Publication string `json:"Publication,omitempty"`
	Instruction string `json:"Instruction,omitempty"`
}

func recordSettled(s settle.Settled) settledRecord {
	r := settledRecord{
		Period:     s.Period,
		Baseline:   int64(s.Baseline),
		Error:      int64(s.Error),
		Metered:    int64(s.Metered),
		Flex:       int64(s.Flex),
		Price:      int64(s.Price),
		Revenue:    int64(s.Revenue),
		Read:       s.Read,
		Known:      s.Known,
		Compared:   s.Compared,
		Deviation:  int64(s.Deviation),
		Unassigned: int64(s.Unassigned),
		Source:     s.Source,
	}

	if !s.Device.IsZero() {
		r.Device = s.Device.String()
	}

	if !s.Publication.IsZero() {
		r.Publication = s.Publication.String()
	}

	if !s.Instruction.IsZero() {
		r.Instruction = s.Instruction.String()
	}

	return r
}

func (r settledRecord) settled() (settle.Settled, error) {
	s := settle.Settled{
		Period:     r.Period,
		Baseline:   flex.WattHours(r.Baseline),
		Error:      flex.WattHours(r.Error),
		Metered:    flex.WattHours(r.Metered),
		Flex:       flex.WattHours(r.Flex),
		Price:      flex.Price(r.Price),
		Revenue:    settle.PicoPounds(r.Revenue),
		Read:       r.Read,
		Known:      r.Known,
		Compared:   r.Compared,
		Deviation:  flex.WattHours(r.Deviation),
		Unassigned: flex.WattHours(r.Unassigned),
		Source:     r.Source,
	}

	var err error
	if r.Device != "" {
		err = s.Device.UnmarshalText([]byte(r.Device))
	}

	if err == nil && r.Publication != "" {
		err = s.Publication.UnmarshalText([]byte(r.Publication))
	}

	if err == nil && r.Instruction != "" {
		err = s.Instruction.UnmarshalText([]byte(r.Instruction))
	}

	return s, err
}

func recordDay(d flex.Day) dayRecord {
	return dayRecord{d.Year, int(d.Month), d.Dom}
}

func (d dayRecord) day() flex.Day {
	return flex.Day{
		Year:  d.Year,
		Month: time.Month(d.Month),
		Dom:   d.Dom,
	}
}

// each changes every element of a list; what is nil stays nil.
func each[From, To any](from []From, change func(From) To) []To {
	if from == nil {
		return nil
	}

	to := make([]To, len(from))
	for i, v := range from {
		to[i] = change(v)
	}

	return to
}

func recordExcluded(x settle.Excluded) excludedRecord {
	return excludedRecord{recordDay(x.Day), string(x.Reason)}
}

func (x excludedRecord) excluded() settle.Excluded {
	return settle.Excluded{
		Day:    x.Day.day(),
		Reason: settle.Reason(x.Reason),
	}
}

func recordResult(r *settle.Result) resultRecord {
	return resultRecord{
		Event:    r.Event.String(),
		Day:      recordDay(r.Day),
		Metering: string(r.Metering),
		Label:    string(r.Label),
		Method:   string(r.Method),
		Quality:  string(r.Quality),

		Used:       each(r.Used, recordDay),
		Excluded:   each(r.Excluded, recordExcluded),
		Adjusted:   r.Adjusted,
		Adjustment: int64(r.Adjustment),

		Periods: each(r.Periods, recordSettled),
		Missing: r.Missing,
		Final:   r.Final,

		Flex:   int64(r.Flex),
		Gross:  int64(r.Gross),
		Credit: int64(r.Credit),
		Kept:   int64(r.Kept),
		Later:  int64(r.Owed - r.Credit),
		Before: int64(r.Before),

		Terms:     recordTerms(r.Terms),
		Consented: r.Consented,
	}
}

func (r *resultRecord) result() (*settle.Result, error) {
	var event flex.FlexEventID
	if err := event.UnmarshalText([]byte(r.Event)); err != nil {
		return nil, fmt.Errorf("stored result: %w", err)
	}

	periods, err := settledPeriods(r.Periods)
	if err != nil {
		return nil, fmt.Errorf("stored result of event %s: %w", event, err)
	}

	result := &settle.Result{
		Event:    event,
		Day:      r.Day.day(),
		Metering: settle.Metering(r.Metering),
		Label:    flex.Label(r.Label),
		Method:   settle.Method(r.Method),
		Quality:  settle.Quality(r.Quality),

		Used:       each(r.Used, dayRecord.day),
		Excluded:   each(r.Excluded, excludedRecord.excluded),
		Adjusted:   r.Adjusted,
		Adjustment: flex.WattHours(r.Adjustment),

		Periods: periods,
		Missing: r.Missing,
		Final:   r.Final,

		Terms:     r.Terms.terms(),
		Consented: r.Consented,
	}

	r.amounts(result)

	return result, nil
}

// settledPeriods reads the periods of a result, or says what is wrong with any of them.
func settledPeriods(records []settledRecord) ([]settle.Settled, error) {
	var faults []error
	periods := each(records, func(p settledRecord) settle.Settled {
		s, err := p.settled()
		faults = append(faults, err)
		return s
	})

	return periods, errors.Join(faults...)
}

// amounts puts what the event moved and what it earned into a result.
func (r *resultRecord) amounts(result *settle.Result) {
	result.Flex = flex.WattHours(r.Flex)
	result.Gross = flex.MicroPounds(r.Gross)
	result.Credit = flex.Pence(r.Credit)
	result.Kept = flex.Pence(r.Kept)
	result.Owed = flex.Pence(r.Credit + r.Later)
	result.Before = settle.PicoPounds(r.Before)
}

// baseLoadRecord is base_load.load: watts for each half-hour of the day by the clock of London.
type baseLoadRecord struct {
	Working [50]flex.Watts `json:"working_w"`
	Weekend [50]flex.Watts `json:"weekend_w"`
}

func encodeDayLoad(d DayLoad) (string, error) {
	b, err := json.Marshal(baseLoadRecord{d[0], d[1]})
	return string(b), err
}

func decodeDayLoad(text string) (DayLoad, error) {
	var r baseLoadRecord
	err := json.Unmarshal([]byte(text), &r)
	return DayLoad{r.Working, r.Weekend}, err
}
