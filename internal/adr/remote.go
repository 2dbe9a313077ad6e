package adr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

const (
	remoteAnswerMax = 8 << 20 // bytes of a page of events
	// a token is not used for so long before its end
	tokenSpare = 30 * time.Second
	// of a token that does not say how long it is good for
	tokenTime = 10 * time.Minute
)

// remote is another party's server as the organisation's VEN sees it.
type remote struct {
	*Service
	upstream *store.ADRUpstream
}

// remoteToken is a token for a server.
type remoteToken struct {
	text  string
	until time.Time
}

// token returns a token for the server: the cached one, or a new one.
func (r *remote) token(ctx context.Context, renew bool) (string, error) {
	known, isKnown := r.tokens.Load(r.upstream.Program)
	if isKnown && !renew && known.(remoteToken).until.After(r.DB.Now()) {
		return known.(remoteToken).text, nil
	}

	form := url.Values{
		"grant_type":    {"client_credentials"},
		"client_id":     {r.upstream.Client},
		"client_secret": {r.upstream.Secret.Reveal()},
	}

	a, err := r.Out.Do(
		ctx,
		egress.Request{
			Method: "POST",
			URL:    r.upstream.TokenURL,
			Body:   []byte(form.Encode()),
			Header: map[string]string{
				"Content-Type": "application/x-www-form-urlencoded",
				"Accept":       "application/json",
			},
		},
	)

	if err != nil {
		return "", flex.Fail(flex.Unavailable, "no token: %v", err)
	}

	answer, err := r.readToken(a)
	if err == nil {
		r.tokens.Store(r.upstream.Program, answer)
	}

	return answer.text, err
}

// readToken reads the answer to a request for a token.
func (r *remote) readToken(a egress.Answer) (remoteToken, error) {
	var answer struct {
		Token   string  `json:"access_token"`
		Seconds float64 `json:"expires_in"`
	}

	wrong := json.Unmarshal(a.Body, &answer)
	if a.Status != 200 || wrong != nil || checkBearer(answer.Token) != nil {
		return remoteToken{}, flex.Fail(
			flex.Unavailable,
			"no token: it answered %d without one that can be used",
			a.Status,
		)
	}

	last := cmp.Or(
		time.Duration(min(max(answer.Seconds, 0), 86400)*float64(time.Second)),
		tokenTime,
	)

	return remoteToken{answer.Token, r.DB.Now().Add(last - tokenSpare)}, nil
}

// do makes a request, and decodes the answer into a value if its status is one of the wanted
// ones. Any other status is Unavailable, and returned. The status of an answer that broke off is
// 0, as if none had come; of one that is too large it is what was answered.
func (r *remote) do(
	ctx context.Context,
	method, path string,
	body, to any,
	wanted ...int,
) (int, error) {
	q := egress.Request{
		Method:    method,
		URL:       r.upstream.URL + path,
		AnswerMax: remoteAnswerMax,
		Header:    map[string]string{"Accept": "application/json"},
	}

	var err error
	if body != nil {
		q.Body, err = json.Marshal(body)
		q.Header["Content-Type"] = "application/json"
	}

	if err != nil {
		return 0, err
	}

	a, err := r.send(ctx, q)
	status := a.Status
	if err != nil && len(a.Body) < remoteAnswerMax {
		status = 0
	}
	if err != nil {
		return status, flex.Fail(
			flex.Unavailable,
			"%s %s: %v",
			method,
			path,
			err,
		)
	}

	if !slices.Contains(wanted, a.Status) {
		return a.Status, flex.Fail(
			flex.Unavailable,
			"%s %s: it answered %d",
			method,
			path,
			a.Status,
		)
	}

	if to != nil && json.Unmarshal(a.Body, to) != nil {
		return a.Status, flex.Fail(
			flex.Unavailable,
			"%s %s: its answer is not what OpenADR has there",
			method,
			path,
		)
	}

	return a.Status, nil
}

// send makes a request, and repeats it with a new token if the cached one is refused.
func (r *remote) send(
	ctx context.Context,
	q egress.Request,
) (egress.Answer, error) {
	var a egress.Answer
	for _, renew := range []bool{false, true} {
		token, err := r.token(ctx, renew)
		if err != nil {
			return a, err
		}

		q.Header["Authorization"] = "Bearer " + token
		a, err = r.Out.Do(ctx, q)
		if err != nil || a.Status != 401 {
			return a, err
		}
	}

	return a, nil
}

// events returns the program's events that are not over, by their ids.
func (r *remote) events(ctx context.Context) (map[string]map[string]any, error) {
	found := map[string]map[string]any{}
	for skip := 0; ; skip += PageMax {
		q := url.Values{
			"programID": {r.upstream.Remote},
			"active":    {"true"},
			"skip":      {strconv.Itoa(skip)},
			"limit":     {strconv.Itoa(PageMax)},
		}

		var page []map[string]any
		_, err := r.do(ctx, "GET", "/events?"+q.Encode(), nil, &page, 200)
		if err != nil {
			return nil, err
		}

		before := len(found)
		for _, fields := range page {
			name, _ := fields["id"].(string)
			if _, err := id.normalise("id", name); err != nil {
				return nil, flex.Fail(
					flex.Unavailable,
					"GET /events: an event has no id: %v",
					err,
				)
			}

			if fields["programID"] != r.upstream.Remote {
				return nil, flex.Fail(
					flex.Unavailable,
					"GET /events: the event %q is of another program than was asked for",
					name,
				)
			}

			found[name] = fields
		}

		if len(found) > upstreamEvents {
			return nil, flex.Fail(
				flex.Unavailable,
				"GET /events: the program has more than %d events",
				upstreamEvents,
			)
		}

		if len(page) < PageMax || len(found) == before {
			return found, nil
		}
	}
}

// reportOrders sends the results of the server's events, as far as they changed.
func (r *remote) reportOrders(ctx context.Context) error {
	var mirrors []store.ADRMirror
	reports := map[flex.ADRObjectID]Object{}
	err := r.DB.Read(ctx, r.upstream.Org, func(tx *store.Tx) error {
		var err error
		mirrors, err = tx.ADRMirrors(ctx, r.upstream.Program)
		if err != nil {
			return err
		}

		stored, err := tx.ADRObjects(ctx, flex.ADRSearch{
			Kind:    flex.ADRReport,
			Program: r.upstream.Program,
			Client:  Reporter,
		})

		for i := range stored {
			reports[stored[i].Event], err = objectOf(&stored[i])
			if err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return err
	}

	for _, m := range mirrors {
		event, found := reports[m.Event]
		if !found || !event.ModifiedAt.After(m.ReportedAt) {
			continue
		}
		if one := r.reportOne(ctx, m, &event); one != nil {
			err = one
		}
	}

	return err
}

// reportOne sends a report, in place of the earlier one if that still exists.
func (r *remote) reportOne(
	ctx context.Context,
	m store.ADRMirror,
	event *Object,
) error {
	document := maps.Clone(event.Fields)
	document["eventID"], document["clientName"] = m.Remote, r.upstream.Name

	var err error
	m.Report, err = r.sendReport(ctx, m.Report, nil, document)
	if err != nil && !isRefused(err) {
		return err
	}

	m.ReportedAt = event.ModifiedAt
	wrong := r.DB.Write(ctx, r.upstream.Org, func(tx *store.Tx) error {
		if err := checkStillPolled(ctx, tx, r.upstream); err != nil {
			return err
		}
		return tx.SetADRMirror(ctx, &m)
	})

	return cmp.Or(wrong, err)
}

// sendReport sends a report, in place of the one with the id if the server still has that, and
// returns its id there. Without an id the report is searched for, except among the ids of
// other reports.
func (r *remote) sendReport(
	ctx context.Context,
	place string,
	others []string,
	document map[string]any,
) (string, error) {
	var stored struct {
		ID string `json:"id"`
	}

	var err error
	found := place == ""
	if found {
		place, err = r.placeOf(ctx, others, document)
		if err != nil {
			return "", err
		}
	}

	status := 404
	if place != "" {
		status, err = r.do(
			ctx,
			"PUT",
			"/reports/"+url.PathEscape(place),
			document,
			nil,
			200,
			404,
		)
	}

	// What was found may be another client's, of the same names.
	if found && (status == 403 || status == 405) {
		status, err = 404, nil
	}

	if err == nil && status == 404 {
		status, err = r.do(
			ctx,
			"POST",
			"/reports",
			document,
			&stored,
			200,
			201,
		)
		place = stored.ID
	}

	// What is refused would be refused again: the next one is sent when something has changed.
	if err != nil && slices.Contains([]int{400, 404, 409}, status) {
		err = refusal{err}
	}

	return place, err
}

// placeOf returns the id of a report on the server, "" if it is not there. It is needed
// because the answer to the first one may have been lost, and a second one would be a
// duplicate. A server that does not support the search is assumed to have none.
func (r *remote) placeOf(
	ctx context.Context,
	others []string,
	document map[string]any,
) (string, error) {
	before := ""
	for skip := 0; skip < upstreamReports; skip += PageMax {
		q := url.Values{
			"eventID":    {document["eventID"].(string)},
			"clientName": {document["clientName"].(string)},
			"skip":       {strconv.Itoa(skip)},
			"limit":      {strconv.Itoa(PageMax)},
		}

		var answer json.RawMessage
		status, err := r.do(
			ctx,
			"GET",
			"/reports?"+q.Encode(),
			nil,
			&answer,
			200,
		)
		if slices.Contains(retryStatuses, status) {
			return "", err
		}

		var page []map[string]any
		if err != nil || json.Unmarshal(answer, &page) != nil {
			return "", nil
		}

		for _, one := range page {
			place, _ := one["id"].(string)
			if place != "" && !slices.Contains(others, place) && isSameReport(one, document) {
				return place, nil
			}
		}

		first := ""
		if len(page) > 0 {
			first, _ = page[0]["id"].(string)
		}
		if len(page) < PageMax || first == before { // a server may know no pages
			return "", nil
		}
		before = first
	}

	return "", nil
}

// retryStatuses are the statuses after which a server may answer later; 0 is no answer.
var retryStatuses = []int{0, 408, 429, 502, 503, 504}

// isSameReport reports whether a report is one of the event, the client and the name of another.
func isSameReport(a, b map[string]any) bool {
	for _, name := range []string{"eventID", "clientName", "reportName"} {
		if a[name] != b[name] {
			return false
		}
	}

	return true
}

// refusal is why a server refuses a report.
type refusal struct{ error }

// Unwrap returns the failure.
func (r refusal) Unwrap() error { return r.error }

// isRefused reports whether a server refuses what it was sent, now and later.
func isRefused(err error) bool {
	var r refusal
	return errors.As(err, &r)
}
