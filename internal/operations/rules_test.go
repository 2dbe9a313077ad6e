package operations

import "testing"

// Every kind of exception says whether it fires an alert when no operator has set a rule: a kind without a default
// rule would never fire, and nothing would say so.
func TestDefaultRules(t *testing.T) {
	for _, k := range Kinds {
		if _, known := defaultRules[k]; !known {
			t.Errorf("%s has no default rule", k)
		}
	}

	if len(defaultRules) != len(Kinds) {
		t.Errorf("%d default rules for %d kinds", len(defaultRules), len(Kinds))
	}
}
