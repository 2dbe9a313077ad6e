package main

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

type alertsRouteSent struct {
	store
	Name string `arg:"" optional:"" help:"Name of the route; all routes if not given."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// sentRow is a message of a route as it is printed.
type sentRow struct {
	Route    string    `json:"route"`
	What     string    `json:"what"`
	Alert    string    `json:"alert_id,omitempty"` // none for a test
	QueuedAt time.Time `json:"queued_at"`
	SentAt   time.Time `json:"sent_at,omitzero"`
	Tries    int       `json:"tries"`
	Error    string    `json:"error,omitempty"` // of the last try
}

func sentRowOf(m records.SentAlert) sentRow {
	r := sentRow{
		Route:    m.Route,
		What:     m.What,
		QueuedAt: m.QueuedAt,
		SentAt:   m.SentAt,
		Tries:    m.Tries,
		Error:    m.Error,
	}

	if !m.Alert.IsZero() {
		r.Alert = m.Alert.String()
	}

	return r
}

// Run lists the latest messages, the newest first.
func (o *alertsRouteSent) Run(ctx context.Context, c console) error {
	p, err := o.alertPage(ctx, true)
	if err != nil {
		return err
	}

	known := slices.ContainsFunc(p.Routes, func(r records.AlertRoute) bool {
		return r.Name == o.Name
	})
	if o.Name != "" && !known {
		return flex.Fail(flex.NotFound, "there is no route %q", o.Name)
	}

	rows := []sentRow{}
	for _, m := range p.Sent {
		if o.Name == "" || m.Route == o.Name {
			rows = append(rows, sentRowOf(m))
		}
	}

	return list(
		c,
		o.JSON,
		rows,
		"QUEUED\tROUTE\tWHAT\tSENT\tTRIES\tERROR",
		func(r sentRow) []any {
			return []any{
				r.QueuedAt,
				r.Route,
				r.What,
				r.SentAt,
				r.Tries,
				plainLine(r.Error),
			}
		},
	)
}
