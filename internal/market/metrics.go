package market

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/store"
)

// collectWithin is how long a scrape waits for the store at most.
const collectWithin = 5 * time.Second

// Metrics exports the number of rejected rows in the sources' latest answers.
type Metrics struct{ Service *Service }

var keptOutRows = prometheus.NewDesc(
	"flexd_prices_kept_out_rows",
	"Rows of a price source's latest answer that were not taken.",
	[]string{"source", "reason"},
	nil,
)

// Describe names the metric.
func (m Metrics) Describe(ch chan<- *prometheus.Desc) { ch <- keptOutRows }

// Collect reads the metric.
func (m Metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	err := m.Service.DB.ReadAll(ctx, func(all *store.All) error {
		out, err := all.RejectedPrices(ctx)
		for _, k := range out {
			ch <- prometheus.MustNewConstMetric(
				keptOutRows,
				prometheus.GaugeValue,
				float64(k.Rows),
				k.Source,
				k.Reason,
			)
		}

		return err
	})

	if err != nil {
		ch <- prometheus.NewInvalidMetric(keptOutRows, err)
	}
}
