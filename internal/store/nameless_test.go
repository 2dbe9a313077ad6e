package store

import (
	"slices"
	"testing"
)

func TestNameless(t *testing.T) {
	for _, tt := range []struct {
		query, text string
		order       []int
	}{
		{"SELECT 1", "SELECT 1", nil},
		{"a = $1 AND b = $2", "a = ? AND b = ?", nil},
		{"a = $2 AND b = $1 AND c = $2", "a = ? AND b = ? AND c = ?", []int{1, 0, 1}},
		{"($10,$11)", "(?,?)", []int{9, 10}},
		{"a = $1 LIMIT $2 OFFSET $3", "a = ? LIMIT ? + 0 OFFSET ? + 0", nil},
		{"cost > '$' AND a = $1", "cost > '$' AND a = ?", nil},
	} {
		text, order := nameless(tt.query)
		if text != tt.text || !slices.Equal(order, tt.order) {
			t.Errorf("%s: %s %v, want %s %v", tt.query, text, order, tt.text, tt.order)
		}
	}
}
