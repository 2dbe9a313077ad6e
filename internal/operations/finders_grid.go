package operations

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

func findLimitLinksLost(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	n, first, err := all.LostCapLinks(ctx, org)
	if err != nil || n == 0 {
		return nil, err
	}

	return []Exception{{
		Kind:  LimitLinkLost,
		Level: Critical,
		Count: n,
		Org:   first.Org,
		Title: fmt.Sprintf(
			"%s held to the fallback, the first since %s: nothing was heard of limits for too long",
			count(n, "feeder"),
			instantText(first.At),
		),
		Text: fmt.Sprintf(
			"First lost: %q, held to %s. Ask the network operator why nothing comes; the fallback binds until something is heard. The links are listed with the limits, also by flexd limits list.",
			first.Group,
			first.Held,
		),
	}}, nil
}

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
			"%s exceeded, by plan: most that of %q, with %g kW in place of %g kW",
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

func findOpenADRSilent(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	n, first, err := all.SilentADRUpstreams(ctx, org)
	if err != nil || n == 0 {
		return nil, err
	}

	heard := "which never answered"
	if !first.AnsweredAt.IsZero() {
		heard = "last heard on " + instantText(first.AnsweredAt)
	}

	return []Exception{{
		Kind:  OpenADRSilent,
		Level: Critical,
		Count: n,
		Org:   first.Org,
		Title: fmt.Sprintf(
			"%s not heard for too long, or with events that cannot be read: %q, %s",
			count(n, "OpenADR server"),
			first.Name,
			heard,
		),
		Text: "The reason: " + first.Problem +
			". What it asked for before goes on; a fallback binds where a limit's link has one. Ask the other party, or set it again with flexd openadr upstream.",
	}}, nil
}
