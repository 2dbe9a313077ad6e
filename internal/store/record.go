package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// decode reads a record; what names it in the error.
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
		CloseAfterDays: b.CloseAfterDays, Counterparty: b.Counterparty, PayerName: b.PayerName, PayerAddress: b.PayerAddress,
		PayerContact: b.PayerContact, GiftLimit: int64(b.GiftLimit), UnclaimedDays: b.UnclaimedDays,
	}
}

func (r *booksRecord) settings() flex.BooksSettings {
	return flex.BooksSettings{
		CloseAfterDays: r.CloseAfterDays, Counterparty: r.Counterparty, PayerName: r.PayerName, PayerAddress: r.PayerAddress,
		PayerContact: r.PayerContact, GiftLimit: flex.Pence(r.GiftLimit), UnclaimedDays: r.UnclaimedDays,
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

type ratesRecord struct {
	Peak    float64 `json:"Peak"`
	OffPeak float64 `json:"OffPeak"`
	Export  float64 `json:"Export"`
}

// put changes a record to what is set now; the rest stays.
func (r *settingsRecord) put(s flex.OrgSettings) {
	r.DefaultNeed = int64(s.DefaultNeed)
	r.FleetCap, r.StartsPerMinute = int64(s.FleetCap), s.StartsPerMinute
	r.Rates = ratesRecord{Peak: s.Rates.Peak, OffPeak: s.Rates.OffPeak, Export: s.Rates.Export}
	r.Books = recordBooks(s.Books)
	r.Payout = recordPayout(s.Payout)
	r.ExportLimit = recordOptional(s.ExportLimit)
	r.OpenADR = s.OpenADR
	r.Page = pageRecord(s.Page)
}

func (r *settingsRecord) settings() flex.OrgSettings {
	return flex.OrgSettings{
		DefaultNeed: flex.WattHours(r.DefaultNeed), FleetCap: flex.Watts(r.FleetCap), StartsPerMinute: r.StartsPerMinute,
		Rates:  flex.BatteryRates{Peak: r.Rates.Peak, OffPeak: r.Rates.OffPeak, Export: r.Rates.Export},
		Books:  r.Books.settings(),
		Payout: r.Payout.settings(),

		ExportLimit: optional[flex.WattHours](r.ExportLimit),
		OpenADR:     r.OpenADR,
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
	Later      int64            `json:"Later,omitempty"` // what is owed beyond Credit
	Before     int64            `json:"Before,omitempty"`
	Terms      termsRecord      `json:"Terms,omitzero"`
	Consented  bool             `json:"Consented,omitempty"`
}

// termsRecord is what a result was paid on; results of before it was kept have none.
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
		Share: int64(t.Share), PaidEarly: int64(t.PaidEarly), LossFactor: int64(t.LossFactor), HalfEven: t.Rounding == settle.HalfEven, ClawBack: t.ClawBack,
		ByMonth: t.ByMonth,
	}
}

func (r *termsRecord) terms() settle.Terms {
	t := settle.Terms{
		Share: settle.Parts(r.Share), PaidEarly: settle.Parts(r.PaidEarly), LossFactor: settle.Parts(r.LossFactor), ClawBack: r.ClawBack, ByMonth: r.ByMonth,
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
}

func recordSettled(s settle.Settled) settledRecord {
	r := settledRecord{
		Period: s.Period, Baseline: int64(s.Baseline), Error: int64(s.Error), Metered: int64(s.Metered), Flex: int64(s.Flex),
		Price: int64(s.Price), Revenue: int64(s.Revenue), Read: s.Read, Known: s.Known,
		Compared: s.Compared, Deviation: int64(s.Deviation), Unassigned: int64(s.Unassigned), Source: s.Source,
	}

	if !s.Device.IsZero() {
		r.Device = s.Device.String()
	}

	if !s.Publication.IsZero() {
		r.Publication = s.Publication.String()
	}

	return r
}

func (r settledRecord) settled() (s settle.Settled, err error) {
	s = settle.Settled{
		Period: r.Period, Baseline: flex.WattHours(r.Baseline), Error: flex.WattHours(r.Error), Metered: flex.WattHours(r.Metered), Flex: flex.WattHours(r.Flex),
		Price: flex.Price(r.Price), Revenue: settle.PicoPounds(r.Revenue), Read: r.Read, Known: r.Known,
		Compared: r.Compared, Deviation: flex.WattHours(r.Deviation), Unassigned: flex.WattHours(r.Unassigned), Source: r.Source,
	}

	if r.Device != "" {
		err = s.Device.UnmarshalText([]byte(r.Device))
	}

	if err == nil && r.Publication != "" {
		err = s.Publication.UnmarshalText([]byte(r.Publication))
	}

	return s, err
}

func recordDay(d flex.Day) dayRecord { return dayRecord{d.Year, int(d.Month), d.Dom} }

func (d dayRecord) day() flex.Day {
	return flex.Day{Year: d.Year, Month: time.Month(d.Month), Dom: d.Dom}
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
	return settle.Excluded{Day: x.Day.day(), Reason: settle.Reason(x.Reason)}
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

// eventRecord is asset_event.told, unless the event is a client's own schedule: that is a list
// of blockRecord.
type eventRecord struct {
	Intent      *intentRecord `json:"intent,omitempty"`
	Tariff      *tariffRecord `json:"tariff,omitempty"`
	VehicleRate int64         `json:"vehicle_w,omitempty"`
	EndAt       time.Time     `json:"end_at,omitzero"`
	Blocks      []blockRecord `json:"blocks,omitempty"`
	Pause       *pauseRecord  `json:"pause,omitempty"`
}

// pauseRecord is what came of a client's own schedule.
type pauseRecord struct {
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"`
	Price int64     `json:"price,omitempty"`
	Saved int64     `json:"saved,omitempty"`
	Why   string    `json:"why,omitempty"`
}

type intentRecord struct {
	Need          int64     `json:"Need"`
	ReadyBy       time.Time `json:"ReadyBy"`
	ReadyByOffset int64     `json:"ReadyByOffset"`
	ReadyByLocal  *int64    `json:"ReadyByLocal"`
	Estimated     *bool     `json:"Estimated"`
	MayChargePeak bool      `json:"MayChargePeak"`
	Mode          string    `json:"Mode"`
	ReceivedAt    time.Time `json:"ReceivedAt"`
}

type tariffRecord struct {
	OffPeak string `json:"OffPeak"`
	Zone    string `json:"Zone"`
	Type    string `json:"Type"`
}

type blockRecord struct {
	Start string `json:"Start"`
	End   string `json:"End"`
}

func encodeEvent(e AssetEvent) (string, error) {
	r := eventRecord{VehicleRate: int64(e.VehicleRate), EndAt: e.EndAt}
	r.Blocks = each(e.Blocks, func(b Block) blockRecord { return blockRecord(b) })
	if p := e.Pause; p != nil {
		r.Pause = &pauseRecord{p.Span.From, p.Span.To, int64(p.Price), int64(p.Saved), string(p.Why)}
	}

	if in := e.Intent; in != nil {
		r.Intent = &intentRecord{
			Need: int64(in.Need), ReadyBy: in.ReadyBy, ReadyByOffset: int64(in.ReadyByOffset), Estimated: in.Estimated,
			MayChargePeak: in.MayChargePeak, Mode: string(in.Mode), ReceivedAt: in.ReceivedAt,
		}

		if in.ReadyByLocal != nil {
			r.Intent.ReadyByLocal = new(int64(*in.ReadyByLocal))
		}
	}

	if t := e.Tariff; t != nil {
		r.Tariff = &tariffRecord{OffPeak: t.OffPeak, Zone: t.Zone, Type: string(t.Type)}
	}

	return encode(r)
}

func decodeEvent(text string) (e AssetEvent, err error) {
	if strings.HasPrefix(text, "[") { // of before what came of it was kept
		var blocks []blockRecord
		err := decode("event of an asset", text, &blocks)
		return AssetEvent{Blocks: each(blocks, func(b blockRecord) Block { return Block(b) })}, err
	}

	var r eventRecord
	if err := decode("event of an asset", text, &r); err != nil {
		return e, err
	}

	return r.event(), nil
}

// event is what a record says.
func (r *eventRecord) event() (e AssetEvent) {
	e = AssetEvent{VehicleRate: flex.Watts(r.VehicleRate), EndAt: r.EndAt}
	if len(r.Blocks) > 0 {
		e.Blocks = each(r.Blocks, func(b blockRecord) Block { return Block(b) })
	}
	if p := r.Pause; p != nil {
		e.Pause = &PauseAnswer{flex.Span{From: p.From, To: p.To}, flex.Price(p.Price), flex.MicroPounds(p.Saved), PauseRefusal(p.Why)}
	}

	if r.Intent != nil {
		e.Intent = r.Intent.intent()
	}
	if t := r.Tariff; t != nil {
		e.Tariff = &flex.Tariff{OffPeak: t.OffPeak, Zone: t.Zone, Type: flex.TariffType(t.Type)}
	}

	return e
}

// intent is the intent that a record says.
func (r *intentRecord) intent() *flex.Intent {
	in := &flex.Intent{
		Need: flex.WattHours(r.Need), ReadyBy: r.ReadyBy, ReadyByOffset: time.Duration(r.ReadyByOffset), Estimated: r.Estimated,
		MayChargePeak: r.MayChargePeak, Mode: flex.ChargingMode(r.Mode), ReceivedAt: r.ReceivedAt,
	}
	if r.ReadyByLocal != nil {
		in.ReadyByLocal = new(flex.WallTime(*r.ReadyByLocal))
	}
	return in
}

// shadowRecord is caps.shadow.
type shadowRecord struct {
	From   time.Time          `json:"from,omitzero"`
	Prices map[string][]int64 `json:"prices,omitempty"`
}

func encodeShadow(s Shadow) (string, error) {
	r := shadowRecord{From: s.From}
	if s.Prices != nil {
		r.Prices = make(map[string][]int64, len(s.Prices))
	}

	for group, prices := range s.Prices {
		r.Prices[group] = each(prices, func(p flex.Price) int64 { return int64(p) })
	}

	return encode(r)
}

func decodeShadow(text string) (Shadow, error) {
	var r shadowRecord
	if err := decode("prices of caps", text, &r); err != nil {
		return Shadow{}, err
	}

	s := Shadow{From: r.From}
	if r.Prices != nil {
		s.Prices = make(map[string][]flex.Price, len(r.Prices))
	}

	for group, prices := range r.Prices {
		s.Prices[group] = each(prices, func(p int64) flex.Price { return flex.Price(p) })
	}

	return s, nil
}

// capRecord is an element of binding.caps.
type capRecord struct {
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Group  string `json:"group,omitempty"`
	Power  int64  `json:"w,omitempty"`
	Price  int64  `json:"price,omitempty"`
	Starts bool   `json:"starts,omitempty"`
	Site   bool   `json:"site,omitempty"`
	Home   int64  `json:"home_w,omitempty"`
}

// endpointRecord is what endpoint.sealed holds.
type endpointRecord struct {
	Secret    string      `json:"secret"`
	OldSecret string      `json:"old_secret,omitempty"`
	Headers   [][2]string `json:"headers,omitempty"`
}

// linkRecord is what cloud_link.sealed holds.
type linkRecord struct {
	Verifier string `json:"Verifier"`
	Code     string `json:"Code"`
}

// tokenRecord is what cloud_token.sealed holds.
type tokenRecord struct {
	Access  string `json:"Access"`
	Refresh string `json:"Refresh"`
}
