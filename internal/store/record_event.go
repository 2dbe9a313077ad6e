package store

import (
	"strings"
	"time"

	"flexd/internal/flex"
)

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
	r := eventRecord{
		VehicleRate: int64(e.VehicleRate),
		EndAt:       e.EndAt,
	}

	r.Blocks = each(e.Blocks, func(b Block) blockRecord {
		return blockRecord(b)
	})
	if p := e.Pause; p != nil {
		r.Pause = &pauseRecord{
			p.Span.From,
			p.Span.To,
			int64(p.Price),
			int64(p.Saved),
			string(p.Why),
		}
	}

	if in := e.Intent; in != nil {
		r.Intent = &intentRecord{
			Need:          int64(in.Need),
			ReadyBy:       in.ReadyBy,
			ReadyByOffset: int64(in.ReadyByOffset),
			Estimated:     in.Estimated,
			MayChargePeak: in.MayChargePeak,
			Mode:          string(in.Mode),
			ReceivedAt:    in.ReceivedAt,
		}

		if in.ReadyByLocal != nil {
			r.Intent.ReadyByLocal = new(int64(*in.ReadyByLocal))
		}
	}

	if t := e.Tariff; t != nil {
		r.Tariff = &tariffRecord{
			OffPeak: t.OffPeak,
			Zone:    t.Zone,
			Type:    string(t.Type),
		}
	}

	return encode(r)
}

func decodeEvent(text string) (AssetEvent, error) {
	if strings.HasPrefix(text, "[") { // of before what came of it was kept
		var blocks []blockRecord
		err := decode("event of an asset", text, &blocks)
		return AssetEvent{Blocks: each(blocks, func(b blockRecord) Block {
			return Block(b)
		})}, err
	}

	var r eventRecord
	if err := decode("event of an asset", text, &r); err != nil {
		return AssetEvent{}, err
	}

	return r.event(), nil
}

// event returns the event of a record.
func (r *eventRecord) event() AssetEvent {
	e := AssetEvent{
		VehicleRate: flex.Watts(r.VehicleRate),
		EndAt:       r.EndAt,
	}

	if len(r.Blocks) > 0 {
		e.Blocks = each(r.Blocks, func(b blockRecord) Block { return Block(b) })
	}
	if p := r.Pause; p != nil {
		e.Pause = &PauseAnswer{
			flex.Span{From: p.From, To: p.To},
			flex.Price(p.Price),
			flex.MicroPounds(p.Saved),
			PauseRefusal(p.Why),
		}
	}

	if r.Intent != nil {
		e.Intent = r.Intent.intent()
	}
	if t := r.Tariff; t != nil {
		e.Tariff = &flex.Tariff{
			OffPeak: t.OffPeak,
			Zone:    t.Zone,
			Type:    flex.TariffType(t.Type),
		}
	}

	return e
}

// intent is the intent that a record says.
func (r *intentRecord) intent() *flex.Intent {
	in := &flex.Intent{
		Need:          flex.WattHours(r.Need),
		ReadyBy:       r.ReadyBy,
		ReadyByOffset: time.Duration(r.ReadyByOffset),
		Estimated:     r.Estimated,
		MayChargePeak: r.MayChargePeak,
		Mode:          flex.ChargingMode(r.Mode),
		ReceivedAt:    r.ReceivedAt,
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
		r.Prices[group] = each(prices, func(p flex.Price) int64 {
			return int64(p)
		})
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
		s.Prices[group] = each(prices, func(p int64) flex.Price {
			return flex.Price(p)
		})
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
	Phase  bool   `json:"phase,omitempty"`
}

// endpointRecord is the content of the sealed column endpoint.sealed.
type endpointRecord struct {
	Secret    string               `json:"secret"`
	OldSecret string               `json:"old_secret,omitempty"`
	Former    []formerSecretRecord `json:"former,omitempty"`
	Headers   [][2]string          `json:"headers,omitempty"`
}

// formerSecretRecord is an earlier secret of an endpoint.
type formerSecretRecord struct {
	Secret string `json:"secret"`
	Until  int64  `json:"until"`
}

// linkRecord is the content of the sealed column cloud_link.sealed.
type linkRecord struct {
	Verifier string `json:"Verifier"`
	Code     string `json:"Code"`
}

// tokenRecord is the content of the sealed column cloud_token.sealed.
type tokenRecord struct {
	Access  string `json:"Access"`
	Refresh string `json:"Refresh"`
}
