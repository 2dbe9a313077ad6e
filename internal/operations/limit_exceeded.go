package operations

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

func findLimitsExceeded(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	n, most, err := all.ExceededCapLimits(ctx, org)
	if err != nil || n == 0 {
		return nil, err
	}

	return []Exception{{
		Kind:  LimitExceeded,
		Level: Critical,
		Count: n,
		Org:   most.Org,
		Title: fmt.Sprintf(
			"%s exceeded, by plan: most by %q, with %g kW in place of %g kW",
			count(n, "feeder limit"),
			most.Group,
			(most.Limit + most.Most).KW(),
			most.Limit.KW(),
		),
		Text: fmt.Sprintf(
			"It is %g kW more, between %s and %s. Heat pumps and hot-water tanks, charge-now, dispatches of batteries and assets that are not under control do not yield to a limit: end what can be ended (charge-now, a dispatch), or inform the network operator. The limits are listed by flexd limits list; what is exceeded is listed for a day after its time.",
			most.Most.KW(),
			instantText(most.Over.From),
			instantText(most.Over.To),
		),
	}}, nil
}
