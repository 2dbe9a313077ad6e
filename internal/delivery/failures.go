package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"flexd/internal/store"
)

// failuresMost bounds the rows of each table of failures.
const failuresMost = 10

// Failures counts the pushes of the last 24 hours whose latest attempt failed, by each
// possible cause: the most frequent first, at most ten of each.
type Failures struct {
	Pushes   int       `json:"pushes"`
	Cause    []Failure `json:"by_cause"`
	Model    []Failure `json:"by_model"`
	Firmware []Failure `json:"by_firmware"`
	Region   []Failure `json:"by_gsp_group"`
	Endpoint []Failure `json:"by_endpoint"`
}

// Failure is a row of a table of failures.
type Failure struct {
	Name   string `json:"name"` // as an operator reads it
	Filter string `json:"-"`    // the value of the list's filter; "" if it has none
	Pushes int    `json:"pushes"`
}

// CauseOf describes why an attempt with this HTTP status failed; 0 means that no answer came.
func CauseOf(status int) string {
	if status == 0 {
		return "no answer"
	}
	return fmt.Sprintf("HTTP %d", status)
}

// failureCount counts pushes by the value of one possible cause.
type failureCount map[string]*Failure

func (c failureCount) add(name, filter string, pushes int) {
	row := c[name]
	if row == nil {
		row = &Failure{Name: name, Filter: filter}
		c[name] = row
	}

	row.Pushes += pushes
}

// rows returns the causes, most pushes first, equal ones by name.
func (c failureCount) rows() []Failure {
	all := make([]Failure, 0, len(c))
	for _, row := range c {
		all = append(all, *row)
	}

	slices.SortFunc(all, func(a, b Failure) int {
		return cmp.Or(
			cmp.Compare(b.Pushes, a.Pushes),
			cmp.Compare(a.Name, b.Name),
		)
	})

	return all[:min(len(all), failuresMost)]
}

// failuresOf counts failed pushes. Endpoints are named with their organisation where there are
// several.
func failuresOf(byOrg map[string][]store.FailedPushes) Failures {
	f := Failures{}
	cause, model := failureCount{}, failureCount{}
	region, endpoint := failureCount{}, failureCount{}
	firmware := failureCount{}

	for org, pushes := range byOrg {
		for _, x := range pushes {
			f.Pushes += x.Pushes
			cause.add(CauseOf(x.Status), strconv.Itoa(x.Status), x.Pushes)
			model.add(cmp.Or(x.Model, "not known"), x.Model, x.Pushes)
			firmware.add(cmp.Or(x.Firmware, "not known"), x.Firmware, x.Pushes)
			region.add(cmp.Or(x.GSPGroup, "not known"), x.GSPGroup, x.Pushes)

			name := string(x.Endpoint)
			if len(byOrg) > 1 {
				name = org + " · " + name
			}
			endpoint.add(name, string(x.Endpoint), x.Pushes)
		}
	}

	f.Cause, f.Model = cause.rows(), model.rows()
	f.Firmware = firmware.rows()
	f.Region, f.Endpoint = region.rows(), endpoint.rows()

	return f
}

// failedSince reads an organisation's failures since the beginning of the figures' day. The
// true clock is used, since pushes are queued by it and not by the organisation's.
func failedSince(
	ctx context.Context,
	tx *store.Tx,
	now time.Time,
) ([]store.FailedPushes, error) {
	return tx.FailedSince(ctx, now.Add(-figuresTime))
}
