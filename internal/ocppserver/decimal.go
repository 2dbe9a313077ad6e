package ocppserver

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// decimal is a number of a message. Chargers write numbers as texts and texts as numbers, and
// some of them a comma for the point.
type decimal struct {
	value float64
	step  float64 // of the last digit that is written
}

var errNoNumber = errors.New("not a number")

func (d *decimal) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}

	read, err := parseDecimal(text)
	if err == nil {
		*d = read
	} else {
		*d = decimal{
			value: math.NaN(),
		} // one bad value does not spoil its message
	}

	return nil
}

func (d decimal) MarshalJSON() ([]byte, error) { return json.Marshal(d.value) }

// parseDecimal reads a number as a charger writes it.
func parseDecimal(text string) (decimal, error) {
	text = strings.TrimSpace(text)
	if strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
		text = strings.Replace(text, ",", ".", 1)
	}

	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return decimal{}, errNoNumber
	}

	step := 1.0
	if _, fraction, ok := strings.Cut(text, "."); ok {
		step = math.Pow10(-len(fraction))
	}

	return decimal{v, step}, nil
}

// integer is a whole number of a message, written as a number or as a text.
type integer int

func (n *integer) UnmarshalJSON(b []byte) error {
	var d decimal
	if err := d.UnmarshalJSON(b); err != nil {
		return err
	}
	if math.IsNaN(d.value) && string(b) != "null" {
		return errNoNumber
	}

	if math.Abs(d.value) <= math.MaxInt32 {
		*n = integer(d.value)
	}

	return nil
}
