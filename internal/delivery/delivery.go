package delivery

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Deliveries returns the deliveries of the filter's organisation, the newest first.
func (s *Service) Deliveries(
	ctx context.Context,
	f Filter,
) ([]Line, error) {
	var lines []Line
	err := s.DB.Read(ctx, f.Org, func(tx *store.Tx) error {
		found, err := tx.Deliveries(ctx, f.query())
		if err != nil {
			return err
		}

		lines = make([]Line, len(found))
		for i := range found {
			lines[i] = lineOf(&found[i], "")
		}

		return nil
	})

	return lines, err
}

// Detail is a delivery with its body, its attempts and its reports.
type Detail struct {
	Line // without names
	// the URL of the request, with the endpoint as it is now; empty without an endpoint
	URL       string
	Body      []byte // the body of the request; nil if its record was deleted
	Attempts  []AttemptView
	Callbacks []flex.Callback
	Replaced  []Replaced // of a dispatch: when newer ones replaced it
}

// Delivery returns one delivery with its body, its attempts and the reports about it.
func (s *Service) Delivery(
	ctx context.Context,
	org flex.OrgID,
	id flex.EventID,
) (Detail, error) {
	var v Detail
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		v, err = s.detail(ctx, tx, id)
		return err
	})

	return v, err
}

// detail is Delivery within a transaction.
func (s *Service) detail(
	ctx context.Context,
	tx *store.Tx,
	id flex.EventID,
) (Detail, error) {
	found, attempts, err := tx.Delivery(ctx, id)
	if err != nil {
		return Detail{}, err
	}

	var v Detail
	v.Line = lineOf(&found, "")
	v.Attempts = make([]AttemptView, len(attempts))
	for i := range attempts {
		v.Attempts[i] = attemptView(&attempts[i])
	}

	v.Callbacks, err = tx.Callbacks(ctx, id)
	if err != nil {
		return v, err
	}

	if found.Kind == store.DispatchPush {
		v.Replaced, err = replacedTimes(ctx, tx, id)
		if err != nil {
			return v, err
		}
	}

	e, err := tx.Endpoint(ctx, found.Endpoint)
	if err != nil && flex.KindOf(err) != flex.NotFound {
		return v, err
	}

	push, err := tx.PushOf(ctx, found)
	if err != nil {
		return v, err
	}

	if e.URL != "" {
		v.URL = address(e.URL, &push)
	}

	v.Body, _ = render(&e, &push, s.BaseURL) // a record that was deleted has no body

	return v, nil
}

// Replay sends a delivery once more, at once, under the same id. It is a Conflict if a newer
// schedule or dispatch replaced it, or its time is over.
func (s *Service) Replay(
	ctx context.Context,
	org flex.OrgID,
	id flex.EventID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		v, _, err := tx.Delivery(ctx, id)
		if err != nil {
			return err
		}

		if err := checkInForce(ctx, tx, &v); err != nil {
			return err
		}

		return tx.Replay(ctx, v)
	})
}

// checkInForce refuses to replay a dispatch that a newer one replaces for a time that is not
// over: sent again, it would arrive after the newer one.
func checkInForce(
	ctx context.Context,
	tx *store.Tx,
	d *store.Delivery,
) error {
	if d.Kind != store.DispatchPush {
		return nil
	}

	times, err := replacedTimes(ctx, tx, d.ID)
	if err != nil {
		return err
	}

	var newest Replaced
	for _, r := range times {
		if r.To.After(tx.Now()) && bytes.Compare(r.By.Bytes(), newest.By.Bytes()) > 0 {
			newest = r
		}
	}

	if newest.By.IsZero() {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"dispatch %v cannot be sent again: dispatch %v took its place from %s on; send that one again",
		d.ID,
		newest.By,
		newest.From.Format(time.RFC3339),
	)
}

// ResendAsset sends the newest schedule of an asset once more, at once, under the same id, and
// returns that id. It is a Conflict if there is none, or its time is over.
func (*Service) ResendAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	if _, err := tx.Asset(ctx, asset); err != nil {
		return "", err
	}

	found, err := tx.Deliveries(ctx, store.DeliveryQuery{
		AssetID: asset,
		Kind:    store.SchedulePush,
		Limit:   1,
	})

	if err != nil {
		return "", err
	}

	if len(found) == 0 {
		return "", flex.Fail(
			flex.Conflict,
			"no schedule of it was ever to be sent",
		)
	}

	return fmt.Sprintf(
		"schedule %d is sent once more",
		found[0].Generation,
	), tx.Replay(ctx, found[0])
}

// testLife is for how long a test message is retried.
const testLife = time.Minute

// Test sends a test message to the endpoint and returns its id.
func (s *Service) Test(
	ctx context.Context,
	org flex.OrgID,
	name flex.EndpointName,
) (flex.EventID, error) {
	var id flex.EventID
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		e, err := tx.Endpoint(ctx, name)
		if err != nil {
			return err
		}

		if !e.Enabled {
			return flex.Fail(
				flex.Conflict,
				"the %s endpoint is disabled: %s; PUT /endpoints/%s enables it",
				name,
				e.Reason,
				name,
			)
		}

		id = tx.NewEventID()

		return tx.Enqueue(ctx, store.Push{
			EventID:    id,
			Kind:       store.TestPush,
			To:         name,
			Generation: 1,
			Value:      store.Urgent,
			ExpiresAt:  tx.Now().Add(testLife),
		})
	})

	return id, err
}

// awaitPoll is the time between two reads by Await.
const awaitPoll = 10 * time.Millisecond

// Await returns the delivery as soon as it was attempted, or as it is when the time is over.
func (s *Service) Await(
	ctx context.Context,
	org flex.OrgID,
	id flex.EventID,
	most time.Duration,
) (Detail, error) {
	var (
		v   Detail
		err error
	)

	for end := time.Now().Add(most); ; {
		v, err = s.Delivery(ctx, org, id)
		if err != nil || v.Tries > 0 || !time.Now().Before(end) {
			return v, err
		}

		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-time.After(awaitPoll):
		}
	}
}

// Retention is how long deliveries, their attempts and callbacks are retained by default.
const Retention = 30 * 24 * time.Hour

// Purge deletes deliveries past their retention.
func (s *Service) Purge(ctx context.Context) (worker.Report, error) {
	before := s.DB.Now().Add(-cmp.Or(s.Retain, Retention))

	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
		var n int64
		err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
			var err error
			n, err = tx.DropDeliveries(ctx, before)
			return err
		})

		return worker.Report{Count: int(n), More: n > 0}, err
	})
}
