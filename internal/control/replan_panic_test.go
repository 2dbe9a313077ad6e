package control

import (
	"strings"
	"testing"

	"flexd/internal/flex"
)

// A panic while one organisation is planned is its error, so that PlanDue goes on with the next. A service without a store panics.
func TestPlanOf_Panic(t *testing.T) {
	_, err := new(Service).planCounted(t.Context(), flex.Org{Name: "acme"})
	if err == nil || !strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "panic") {
		t.Errorf("a panic is %v", err)
	}
}
