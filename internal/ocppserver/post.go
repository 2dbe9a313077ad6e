package ocppserver

import (
	"context"
	"math"
	"net/http"
	"slices"

	"flexd/client"
)

const (
	// batchMax is how many readings are sent at once.
	batchMax = 1000
	// poisonTries is how often a single reading is sent that flexd fails on.
	poisonTries = 5
)

// posting is the state of sending readings to flexd. Batches shrink while flexd fails on them,
// until the failing reading is alone and is dropped.
type posting struct {
	size  int // of the next batch; 0 is batchMax
	tries int // of the first reading alone
}

// report queues a reading for flexd. The caller holds mu.
func (c *charger) report(r report) {
	if math.IsNaN(r.KWh) || math.IsInf(r.KWh, 0) {
		c.b.Log.Error(
			"a reading is no number",
			"charger",
			c.id,
			"connector",
			r.Number,
			"label",
			r.Label,
		)

		return
	}
	if c.noPassword {
		return
	}
	if len(c.reports) == 0 {
		c.reportAt = c.b.Now().Add(c.b.Timing.Report)
	}

	c.reports = append(c.reports, r)
	if len(c.reports) > reportsMax {
		c.reports = c.reports[1:]
	}
}

// post sends the queued readings that have waited long enough.
func (c *charger) post(ctx context.Context) error {
	for {
		batch := c.nextBatch()
		if len(batch) == 0 {
			return nil
		}
		if err := c.postBatch(ctx, batch); err != nil {
			return err
		}
	}
}

// nextBatch removes the next due readings from the queue.
func (c *charger) nextBatch() []report {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(c.reports) == 0 || c.b.Now().Before(c.reportAt) {
		return nil
	}

	size := batchMax
	if c.posting.size > 0 {
		size = c.posting.size
	}

	size = min(size, len(c.reports))
	batch := c.reports[:size:size]
	c.reports = c.reports[size:]
	c.sending = batch

	return batch
}

// postBatch sends readings. If flexd cannot accept them now, they are queued again, but not
// without limit.
func (c *charger) postBatch(ctx context.Context, batch []report) error {
	readings := make([]client.ReadingDataPoint, len(batch))
	for i, r := range batch {
		readings[i] = client.ReadingDataPoint{
			AssetID:        r.Asset,
			StartTimestamp: client.At(r.From),
			EndTimestamp:   client.At(r.To),
			Label:          client.Label(r.Label),
			Value:          r.KWh,
		}
	}

	verdicts, err := c.b.Client.PostReadings(ctx, readings)
	if err != nil {
		c.b.Log.Error(
			"readings did not reach flexd",
			"charger",
			c.id,
			"readings",
			len(readings),
			"err",
			err,
		)

		return c.requeue(batch, client.StatusOf(err))
	}

	c.posting = posting{}
	c.noteDelivered()
	for i, v := range verdicts.Responses {
		if !v.Accepted && i < len(readings) {
			c.b.Log.Warn(
				"flexd refused a reading",
				"charger",
				c.id,
				"reading",
				readings[i],
				"why",
				v.Error,
			)
		}
	}

	return nil
}

// mayPass reports whether flexd may later accept a request that it answered with this status;
// 0 means no answer. For example, an expired token is renewed, and a retry conflicts with its
// first attempt only while that is being processed.
func mayPass(status int) bool {
	passing := []int{
		0,
		http.StatusUnauthorized,
		http.StatusConflict,
		http.StatusTooManyRequests,
	}

	return status >= http.StatusInternalServerError ||
		slices.Contains(passing, status)
}

// requeue queues a failed batch again. After a server error the batch is sent in halves;
// refused readings are dropped.
func (c *charger) requeue(batch []report, status int) error {
	refused := status >= http.StatusBadRequest && !mayPass(status)
	dropAll := false
	if status >= 500 && status != http.StatusServiceUnavailable {
		c.posting.size = max(1, len(batch)/2)
		if len(batch) == 1 {
			c.posting.tries++
		}
		dropAll = c.posting.tries >= poisonTries
	}

	if refused || dropAll {
		c.b.Log.Error(
			"readings are dropped",
			"charger",
			c.id,
			"status",
			status,
			"first",
			batch[0].Span,
			"readings",
			len(batch),
		)

		c.posting = posting{}
		c.noteDelivered()

		return nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = nil
	c.reports = append(batch, c.reports...)
	c.reports = c.reports[max(0, len(c.reports)-reportsMax):]
	c.reportAt = c.b.Now().Add(c.b.Timing.Retry)

	return errRetry
}

// noteDelivered notes that the readings under way are finished: flexd has them, or they were
// dropped.
func (c *charger) noteDelivered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = nil
}
