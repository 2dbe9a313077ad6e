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

// posting is how readings are sent to flexd: in batches that shrink while flexd fails on them,
// until the one it fails on is alone and is dropped.
type posting struct {
	size  int // of the next batch; 0 is batchMax
	tries int // of the first reading alone
}

// report keeps a reading for flexd. The caller holds mu.
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

// post sends the readings that wait, when they have waited long enough.
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

// nextBatch takes readings that are due off the queue.
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

// postBatch sends readings. Those that flexd cannot take now are put back, but not for ever.
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

		return c.putBack(batch, client.StatusOf(err))
	}

	c.posting = posting{}
	c.sent()
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

// mayPass reports whether flexd may take later what it answered with a status, which is 0 if
// it did not answer. A token expires, and a request that is tried again conflicts with its
// first try while that is under way: nobody knows then whether it is done.
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

// putBack keeps a batch that failed. One that flexd answered with an error of its own is sent
// in halves; what was refused is dropped.
func (c *charger) putBack(batch []report, status int) error {
	refused := status >= http.StatusBadRequest && !mayPass(status)
	poisoned := false
	if status >= 500 && status != http.StatusServiceUnavailable {
		c.posting.size = max(1, len(batch)/2)
		if len(batch) == 1 {
			c.posting.tries++
		}
		poisoned = c.posting.tries >= poisonTries
	}

	if refused || poisoned {
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
		c.sent()

		return nil
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = nil
	c.reports = append(batch, c.reports...)
	c.reports = c.reports[max(0, len(c.reports)-reportsMax):]
	c.reportAt = c.b.Now().Add(c.b.Timing.Retry)

	return errAgain
}

// sent notes that flexd has the readings that were under way, or will not have them.
func (c *charger) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sending = nil
}
