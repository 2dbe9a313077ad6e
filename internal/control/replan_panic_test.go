package control

import (
	"strings"
	"testing"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A panic while one organisation is planned is returned as its error, and PlanDue continues
// with the next. The panic comes from a service without a store.
func TestPlanOf_Panic(t *testing.T) {
	_, err := new(Service).planCounted(t.Context(), flex.Org{Name: "acme"})
	if err == nil || !strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "panic") {
		t.Errorf("a panic is %v", err)
	}
}

// A panic while the forecast of one asset is made is returned as its error, and the others are
// forecast. The panic comes from a missing asset.
func TestForesee_Panic(t *testing.T) {
	var f Foreseen
	var solver charge.Solver
	p := &store.ScheduledAsset{}
	p.Current.AssetID = flex.AssetID{1}
	m := market{sites: map[flex.AssetID]*sitePlan{{1}: {}}}

	v, err := new(Service).tryToForesee(t.Context(), p, m, &solver)
	if err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("a panic is %v", err)
	}

	f.add(&v, err)
	if f != (Foreseen{Failed: 1}) {
		t.Errorf("%+v", f)
	}
}
