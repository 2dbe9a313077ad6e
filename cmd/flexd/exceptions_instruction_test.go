package main

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store/storetest"
)

// instructNobody adds an instruction of one hour that calls nobody. It has the id of an asset.
func (s *troubles) instructNobody(from time.Time, id flex.AssetID) {
	s.Helper()
	s.Exec(`INSERT INTO instruction (org_id, id, change_w, group_name, gsp_group, from_at, to_at, service, price, reason, unfair, who, made_at, looked_at, target)
		VALUES ($1, $2, -5000, '', '', $3, $4, 'dno', 0, 'peak', FALSE, 'ada', $5, $5, '9000000 9000000')`,
		s.Org.Bytes(), id.Bytes(), from.UnixMicro(), from.Add(time.Hour).UnixMicro(), s.now.Add(-time.Hour).UnixMicro())
}

// unanswered adds a product in which nobody takes part, and to which answers are open for a
// time. It has the id of an asset.
func (s *troubles) unanswered(id flex.AssetID, ends time.Duration) {
	s.Helper()
	by := s.now.Add(ends)
	from := by.Add(2 * time.Hour)
	s.Exec(`INSERT INTO grid_product (id, org_id, reference, service, group_name, gsp_group, from_at, to_at, change_w, price, availability, baseline, opt_out,
			answer_by, who, made_at, send_at)
		VALUES ($1, $2, 'DFS-1', 'dfs', '', '', $3, $4, -5000, 100000000, 0, '', FALSE, $5, 'ada', $6, $5)`,
		id.Bytes(), s.Org.Bytes(), from.UnixMicro(), from.Add(time.Hour).UnixMicro(), by.UnixMicro(), s.now.Add(-time.Hour).UnixMicro())
}

// of are the exceptions of a kind, in words; empty for none.
func (s *troubles) of(h *app.App, kind operations.Kind) string {
	s.Helper()
	found, _, err := h.Operations.Exceptions(s.Context(), s.Org)
	if err != nil {
		s.Fatal(err)
	}

	text := ""
	for _, e := range found {
		if e.Kind == kind {
			text += string(e.Level) + ": " + e.Title + ". " + e.Text
		}
	}

	return text
}

// TestExceptions_InstructionUncalled looks at an instruction that calls nobody, one car, a car
// that has refused, and a car that was released, before it begins and while it runs. Then the
// instruction is stopped.
func TestExceptions_InstructionUncalled(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)

		wants := func(when string, words ...string) {
			t.Helper()
			text := s.of(h, operations.InstructionUncalled)
			if len(words) == 0 && text != "" {
				t.Errorf("%s: %s", when, text)
			}

			for _, w := range words {
				if !strings.Contains(text, w) {
					t.Errorf("%s: %q is not in %q", when, w, text)
				}
			}
		}

		car := s.car()
		s.instructNobody(s.now.Add(time.Hour), car)
		wants("ahead", "warning: 1 instruction of the grid that nothing comes of", "A preview of the same says why")
		s.Exec(`UPDATE instruction SET from_at = $1, to_at = $2`, s.now.Add(-time.Minute).UnixMicro(), s.now.Add(time.Hour).UnixMicro())
		wants("begun", "critical: 1 instruction")

		s.Exec(`INSERT INTO called_asset (instruction_id, asset_id, site_id, org_id, called_at, power_w, cost, from_at, baseline, expected, number)
			SELECT id, id, site_id, org_id, $2, 7000, 0, $2, '3600x7000', '3600x0', 1 FROM asset WHERE id = $1`, car.Bytes(), s.now.UnixMicro())
		wants("a car is called")

		s.push(car, s.plan(car, time.Hour, 5000, 8*time.Hour, "00:00-24:00"), nil)
		wants("it has refused", "every asset that is called has refused")
		s.Exec(`UPDATE outbox SET accepted = generation`)
		wants("it has accepted")
		s.Exec(`UPDATE called_asset SET released_at = $1`, s.now.UnixMicro())
		wants("it was let go", "critical: 1 instruction")

		s.Exec(`UPDATE instruction SET stopped_at = $1, stopped_by = 'ada'`, s.now.UnixMicro())
		wants("stopped")
		s.Exec(`UPDATE instruction SET stopped_at = NULL, stopped_by = NULL`)
		s.Exec(`UPDATE org SET clock_offset = $1`, (2 * time.Hour).Microseconds())
		wants("over by the organisation's clock")
	})
}

// TestExceptions_ProductUnanswered: answers to a product end in two days, end in two hours,
// and have ended. Then a household takes part.
func TestExceptions_ProductUnanswered(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second)}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		car := s.Asset(s.Site(flex.FullScheduleMethod), flex.Charger, 7000)
		s.unanswered(car, 48*time.Hour)
		if text := s.of(h, operations.ProductUnanswered); text != "" {
			t.Errorf("in two days: %s", text)
		}

		for ends, want := range map[time.Duration]string{
			2 * time.Hour:     `to "DFS-1" answers end at `,
			-10 * time.Minute: `to "DFS-1" answers ended at `,
		} {
			s.Exec(`UPDATE grid_product SET answer_by = $1`, s.now.Add(ends).UnixMicro())
			if text := s.of(h, operations.ProductUnanswered); !strings.HasPrefix(text, "warning: 1 product in which no household takes part") ||
				!strings.Contains(text, want) {
				t.Errorf("answers end in %v: %q", ends, text)
			}
		}

		s.Exec(`INSERT INTO product_site (product_id, site_id, org_id, event_id, invited_at, takes_part)
			SELECT id, site_id, org_id, id, $2, TRUE FROM asset WHERE id = $1`, car.Bytes(), s.now.UnixMicro())
		if text := s.of(h, operations.ProductUnanswered); text != "" {
			t.Errorf("a household takes part: %s", text)
		}
	})
}
