package store

import "flexd/internal/flex"

type payoutRecord struct {
	WithoutCode  bool        `json:"without_code,omitempty"`
	CoolingHours *int64      `json:"cooling_hours,omitempty"`
	TwoAbove     *int64      `json:"two_above_pence,omitempty"`
	DailyCap     *int64      `json:"daily_cap_pence,omitempty"`
	FileFormat   string      `json:"file_format,omitempty"`
	Payer        payerRecord `json:"payer,omitzero"`
}

type payerRecord struct {
	SortCode string `json:"sort_code,omitempty"`
	Number   string `json:"number,omitempty"`
	SUN      string `json:"sun,omitempty"`
	IBAN     string `json:"iban,omitempty"`
	BIC      string `json:"bic,omitempty"`
}

func recordPayout(s flex.PayoutSettings) payoutRecord {
	return payoutRecord{
		WithoutCode:  s.WithoutCode,
		CoolingHours: recordOptional(s.CoolingHours),
		TwoAbove:     recordOptional(s.TwoAbove),
		DailyCap:     recordOptional(s.DailyCap),
		FileFormat:   s.FileFormat,
		Payer:        payerRecord(s.Payer),
	}
}

func (r payoutRecord) settings() flex.PayoutSettings {
	return flex.PayoutSettings{
		WithoutCode:  r.WithoutCode,
		CoolingHours: optional[int](r.CoolingHours),
		TwoAbove:     optional[flex.Pence](r.TwoAbove),
		DailyCap:     optional[flex.Pence](r.DailyCap),
		FileFormat:   r.FileFormat,
		Payer:        flex.PayerSettings(r.Payer),
	}
}

func recordOptional[T ~int | ~int64](o flex.Optional[T]) *int64 {
	if !o.Given {
		return nil
	}
	n := int64(o.Value)

	return &n
}

func optional[T ~int | ~int64](n *int64) flex.Optional[T] {
	if n == nil {
		return flex.Optional[T]{}
	}
	return flex.Some(T(*n))
}
