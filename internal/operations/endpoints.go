package operations

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// findEndpoints finds endpoints that are disabled, and what has no endpoint that it can be sent to.
func findEndpoints(
	ctx context.Context,
	all *store.All,
	fleet *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	endpoints, err := all.AllEndpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}

	unplaced, err := all.UnplacedDispatches(ctx)
	if err != nil {
		return nil, fmt.Errorf("count dispatches without an endpoint: %w", err)
	}

	var found []Exception
	for _, o := range fleet.Orgs {
		if !org.IsZero() && o.ID != org {
			continue
		}

		has := false
		for _, e := range endpoints {
			if e.Org != o.ID {
				continue
			}

			has = has || e.Name == flex.ScheduleEndpoint
			if !e.Enabled {
				found = append(found, Exception{
					Kind:  EndpointDisabled,
					Level: Critical,
					Count: 1,
					Org:   o.ID,
					Title: fmt.Sprintf("The %s endpoint of %s is disabled", e.Name, o.Name),
					Text: "The reason: " + e.Reason +
						". What is due waits until it is set or enabled again: flexd endpoint set, or PUT /endpoints/" +
						string(e.Name) + ".",
				})
			}
		}

		planned := fleet.ByOrg[o.ID].planned
		if has {
			planned = 0
		}

		if e, missing := withoutEndpoint(o, planned, unplaced[o.ID]); missing {
			found = append(found, e)
		}
	}

	return found, nil
}

// withoutEndpoint is the exception of an organisation that has assets with a plan, or dispatches, and no
// endpoint that they can be sent to.
func withoutEndpoint(o flex.Org, planned, dispatches int) (Exception, bool) {
	e := Exception{
		Kind:  EndpointMissing,
		Level: Critical,
		Count: planned + dispatches,
		Org:   o.ID,
	}

	const (
		schedules = "Its assets are planned and no client hears of it. Set one: flexd endpoint set, or PUT /endpoints/schedule."
		waiting   = " waiting: nothing is sent until one is set, and nothing at all once their time is over: flexd endpoint set --dispatch, or PUT /endpoints/dispatch."
	)

	switch {
	case planned > 0 && dispatches > 0:
		e.Title = o.Name + " has no endpoint for schedules and none for dispatches"
		e.Text = schedules + " " + count(dispatches, "push") + " of dispatches" + waiting
	case planned > 0:
		e.Title = o.Name + " has no endpoint for schedules"
		e.Text = schedules
	case dispatches > 0:
		e.Title = o.Name + " has no endpoint for dispatches"
		e.Text = count(dispatches, "push") + " of dispatches" + waiting
	}

	return e, e.Count > 0
}
