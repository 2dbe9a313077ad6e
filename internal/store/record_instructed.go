package store

import (
	"database/sql"
	"encoding/json"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// instructedRecord is an element of flex_event.instructed.
type instructedRecord struct {
	Period      int                `json:"period"`
	Seconds     int                `json:"seconds"`
	Price       int64              `json:"price"`
	Down        bool               `json:"down,omitempty"`
	Instruction flex.InstructionID `json:"instruction"`
	Baseline    string             `json:"baseline,omitempty"`
}

func writeInstructed(parts []settle.Instructed) (any, error) {
	if len(parts) == 0 {
		return nil, nil
	}

	return encode(each(parts, func(p settle.Instructed) instructedRecord {
		return instructedRecord{
			Period:      p.Period,
			Seconds:     p.Seconds,
			Price:       int64(p.Price),
			Down:        p.Down,
			Instruction: p.Instruction,
			Baseline:    string(p.Baseline),
		}
	}))
}

func readInstructed(text sql.NullString) ([]settle.Instructed, error) {
	if !text.Valid {
		return nil, nil
	}

	var records []instructedRecord
	if err := json.Unmarshal([]byte(text.String), &records); err != nil {
		return nil, err
	}

	return each(records, func(r instructedRecord) settle.Instructed {
		return settle.Instructed{
			Period:      r.Period,
			Seconds:     r.Seconds,
			Price:       flex.Price(r.Price),
			Down:        r.Down,
			Instruction: r.Instruction,
			Baseline:    settle.Method(r.Baseline),
		}
	}), nil
}
