package operations

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

func findRefused(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, total, err := all.RefusedSchedules(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	return refusedException(ctx, all, Refused, found, total)
}

func findDispatchRefused(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, total, err := all.RefusedDispatches(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	return refusedException(ctx, all, DispatchRefused, found, total)
}

// refusedException describes messages that a client refused or reported as failed, of which there is one at least.
func refusedException(
	ctx context.Context,
	all *store.All,
	kind Kind,
	found []store.RefusedSchedule,
	total int,
) ([]Exception, error) {
	message := "schedule"
	effect := "They are counted as planned and are not controlled."
	advice := " Mend the client's endpoint, then choose them in the list of assets and send them again, or use flexd replay."
	if kind == DispatchRefused {
		message = "dispatch"
		effect = "They do not do what they were planned or called to do."
		advice = " Mend the client's endpoint for dispatches: what is planned next is sent by itself."
	}

	what, said := refusals(found)
	assets, err := examplesOf(ctx, all, refusedIDs(found))

	return []Exception{{
		Kind:   kind,
		Level:  Critical,
		Count:  total,
		Assets: assets,
		Title: fmt.Sprintf(
			"%s whose %s the client %s, the first made on %s",
			count(total, "asset"),
			message,
			what,
			instantText(found[0].First),
		),
		Text: effect + said + advice,
	}}, err
}

// refusedIDs are the assets of what was refused.
func refusedIDs(found []store.RefusedSchedule) []flex.AssetID {
	ids := make([]flex.AssetID, len(found))
	for i, r := range found {
		ids[i] = r.AssetID
	}

	return ids
}

// refusals says what the client did with messages, and what it answered.
func refusals(refused []store.RefusedSchedule) (string, string) {
	what, said := "refused", ""
	answers := map[int]bool{}
	reported := 0

	for _, r := range refused {
		if r.Reported {
			reported++
		}

		if r.Status != 0 && !answers[r.Status] {
			answers[r.Status] = true
			said += fmt.Sprintf(" %d,", r.Status)
		}
	}

	if said != "" {
		said = " It answered" + said[:len(said)-1] + "."
	}

	if reported == 0 {
		return what, said
	}

	what = "reported as rejected or failed"
	if reported < len(refused) {
		what = "refused, or " + what
	}

	return what, said + " Its callback said REJECTED or FAILED after it had accepted them, and not EXECUTED since: the page of the delivery has it."
}
