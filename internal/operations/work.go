package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// FailedFor is how long queued work that failed for good is named.
const FailedFor = 24 * time.Hour

// findWorkFailed finds queued work that failed for good: nothing tries it again.
func findWorkFailed(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, err := all.FailedWork(ctx, org, all.Now().Add(-FailedFor))
	if err != nil || len(found) == 0 {
		return nil, err
	}

	var latest time.Time
	var kinds []string
	n := 0

	for _, f := range found {
		n += f.Count
		latest = flex.Later(latest, f.At)
		kinds = append(kinds, fmt.Sprintf("%s of the kind %s", grouped(f.Count), f.Kind))
	}

	return []Exception{{
		Kind:  WorkFailed,
		Level: Warning,
		Count: n,
		Org:   org,
		Title: fmt.Sprintf(
			"%s failed for good within a day, the latest on %s: %s",
			count(n, "queued job"),
			instantText(latest),
			strings.Join(kinds, ", "),
		),
		Text: "It is not tried again: an e-mail to a household, an alert or an OpenADR notice was not taken, or a cloud's token was not refreshed." +
			" flexd doctor has the latest error of each kind. A day after the last failure it is listed no longer.",
	}}, nil
}

// findUnrouted finds alerts that fire and that no route gets.
func findUnrouted(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	n, first, err := all.UnroutedAlerts(ctx, org, string(AlertUnrouted))
	if err != nil || n == 0 {
		return nil, err
	}

	return []Exception{{
		Kind:  AlertUnrouted,
		Level: Warning,
		Count: n,
		Org:   org,
		Title: fmt.Sprintf(
			"%s firing that no route sends to anybody, the first since %s",
			count(n, "alert"),
			instantText(first),
		),
		Text: "There is no route for them: flexd alerts route add. What fires already is not sent by a new route. Acknowledge what somebody looks after.",
	}}, nil
}

// failedJobs are the background jobs of this process whose latest run failed, or whose run under way does not end.
func (s *Service) failedJobs() []Exception {
	if s.Jobs == nil {
		return nil
	}

	var found []Exception
	for _, w := range s.Jobs() {
		if began := w.HangsSince(); !began.IsZero() {
			found = append(found, jobException(
				fmt.Sprintf(
					"The background job %q has been in one run since %s",
					w.Name,
					instantText(began),
				),
				"It hangs, or has far more to do than usual, and nothing else of it is done meanwhile. The log says what it did last; if it does not end, start flexd again.",
			))
			continue
		}

		if last := w.Last(); last.Err != nil {
			found = append(found, jobException(
				fmt.Sprintf(
					"The background job %q has failed since %s",
					w.Name,
					instantText(last.FailedSince),
				),
				"What it does waits; it is tried again by itself. The Engine page and the log have the reason.",
			))
		}
	}

	return found
}

func jobException(title, text string) Exception {
	return Exception{
		Kind:  JobFailed,
		Level: Critical,
		Count: 1,
		Title: title,
		Text:  text,
	}
}
