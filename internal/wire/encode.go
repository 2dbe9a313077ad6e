package wire

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Encode writes an answer as JSON. It fails only on text that is not UTF-8.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing %T: %w", v, err)
	}

	return b, nil
}
