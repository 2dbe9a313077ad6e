package store

import "testing"

// TestOrigins has the phases that a profile names be stored with a schedule's origins, where a flexd before reads the same words as ever: the
// first three, what follows " home", and the last.
func TestOrigins(t *testing.T) {
	for origins, stored := range map[string]string{
		"":                                   " 3-phase",
		"intent power":                       "intent power 3-phase",
		"intent power tariff":                "intent power tariff 3-phase",
		"intent power tariff home 2.5":       "intent power tariff 3-phase home 2.5",
		"intent power tariff " + PlanRefused: "intent power tariff 3-phase " + PlanRefused,
		"intent  tariff home " + PlanRefused: "intent  tariff 3-phase home " + PlanRefused,
	} {
		for phases, want := range map[int]string{0: origins, 3: stored} {
			got := writeOrigins(&PlanInputs{Origins: origins, ProfilePhases: phases})
			if got != want {
				t.Errorf("%q with %d phases is stored as %q", origins, phases, got)
			}

			var read PlanInputs
			err := originsText{&read}.Scan(got)
			if err != nil || read.Origins != origins || read.ProfilePhases != phases {
				t.Errorf(
					"%q is read as %q with %d phases: %v",
					got,
					read.Origins,
					read.ProfilePhases,
					err,
				)
			}
		}
	}
}
