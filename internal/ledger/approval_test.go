package ledger_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

func TestPayoutTerms_Approve(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	terms := ledger.PayoutTerms{Cooling: 24 * time.Hour, TwoAbove: 10_000, DailyCap: 50_000}
	old := now.Add(-24 * time.Hour)

	for name, tt := range map[string]struct {
		approval ledger.Approval
		complete bool
		wrong    string
	}{
		"within every limit":          {ledger.Approval{Amount: 10_000, LinkedAt: old, By: "ann"}, true, ""},
		"linked a moment too late":    {ledger.Approval{Amount: 1, LinkedAt: old.Add(time.Microsecond), By: "ann"}, false, "can be approved from 2026-03-04 12:00 UTC"},
		"one penny above the limit":   {ledger.Approval{Amount: 10_001, LinkedAt: old, By: "ann"}, false, ""},
		"together above the limit":    {ledger.Approval{Amount: 1, ToAccount: 10_000, LinkedAt: old, By: "ann"}, false, ""},
		"by a second operator":        {ledger.Approval{Amount: 10_001, LinkedAt: old, By: "ann", Before: []string{"bob"}}, true, ""},
		"twice by the same operator":  {ledger.Approval{Amount: 10_001, LinkedAt: old, By: "ann", Before: []string{"ann"}}, false, "ann approved it already"},
		"exactly the day's cap":       {ledger.Approval{Amount: 10_000, Today: 40_000, LinkedAt: old, By: "ann"}, true, ""},
		"one penny above the day":     {ledger.Approval{Amount: 10_000, Today: 40_001, LinkedAt: old, By: "ann"}, false, "approve it tomorrow"},
		"above any day":               {ledger.Approval{Amount: 50_001, LinkedAt: old, By: "ann"}, false, "at most £500.00 a day, and this alone is £500.01: raise"},
		"the same again, when enough": {ledger.Approval{Amount: 10_000, LinkedAt: old, By: "ann", Before: []string{"ann"}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			complete, err := terms.Approve(tt.approval, now)
			if complete != tt.complete || (err != nil) != (tt.wrong != "") {
				t.Fatalf("%t %v, want %t and %q", complete, err, tt.complete, tt.wrong)
			}

			if err != nil && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), tt.wrong)) {
				t.Errorf("%v, want %q", err, tt.wrong)
			}
		})
	}
}
