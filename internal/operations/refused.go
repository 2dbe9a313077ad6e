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
	refused, total, err := all.RefusedSchedules(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	ids := make([]flex.AssetID, len(refused))
	for i, r := range refused {
		ids[i] = r.AssetID
	}

	what, said := refusals(refused)
	assets, err := named(ctx, all, ids)

	return []Exception{{
		Kind:   Refused,
		Level:  Critical,
		Count:  total,
		Assets: assets,
		Title: fmt.Sprintf(
			"%s whose schedule the client %s, the first made on %s",
			count(total, "asset"),
			what,
			instantText(refused[0].First),
		),
		Text: "They are counted as planned and are not controlled." + said +
			" Mend the client's endpoint, then choose them in the list of assets and send them again, or use flexd replay.",
	}}, err
}

func findDispatchRefused(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	refused, total, err := all.RefusedDispatches(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	ids := make([]flex.AssetID, len(refused))
	for i, r := range refused {
		ids[i] = r.AssetID
	}

	what, said := refusals(refused)
	assets, err := named(ctx, all, ids)

	return []Exception{{
		Kind:   DispatchRefused,
		Level:  Critical,
		Count:  total,
		Assets: assets,
		Title: fmt.Sprintf(
			"%s whose dispatch the client %s, the first made on %s",
			count(total, "asset"),
			what,
			instantText(refused[0].First),
		),
		Text: "They do not do what they were planned or called to do." + said +
			" Mend the client's endpoint for dispatches: what is planned next is sent by itself.",
	}}, err
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
