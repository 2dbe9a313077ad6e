package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

var _ = law(
	"a report that another OpenADR server asked for is of an event that is kept of it",
	`
	SELECT t.org_id AS what FROM adr_telemetry t LEFT JOIN adr_mirror m ON m.program_id = t.program_id AND m.remote_id = t.remote_id AND m.org_id = t.org_id
	WHERE m.event_id IS NULL`,
)

// ADRTelemetry is a report that an event of a server asks for, as it was sent last.
type ADRTelemetry struct {
	Program  flex.ADRObjectID
	Remote   string    // the event's id there
	Place    int       // among the reports that the event asks for
	Modified string    // of the event that it was made for
	Report   string    // its id there; empty until it is taken
	Sent     string    // a digest of what was sent
	AgainAt  time.Time // when it is made again; zero for never
}

// ADRTelemetry returns the reports that were sent to a server.
func (tx *Tx) ADRTelemetry(
	ctx context.Context,
	program flex.ADRObjectID,
) ([]ADRTelemetry, error) {
	return rows(ctx, tx.conn, func(s scanner) (ADRTelemetry, error) {
		var t ADRTelemetry
		err := s.Scan(
			&t.Program,
			&t.Remote,
			&t.Place,
			&t.Modified,
			&t.Report,
			&t.Sent,
			instant{&t.AgainAt},
		)

		return t, err
	}, `SELECT program_id, remote_id, place, modified, report_id, sent, again_at FROM adr_telemetry WHERE org_id = $1 AND program_id = $2 ORDER BY remote_id, place`,
		tx.org.Bytes(), program.Bytes())
}

// SetADRTelemetry records that a report was sent.
func (tx *Tx) SetADRTelemetry(ctx context.Context, t *ADRTelemetry) error {
	row := []value{
		{"program_id", t.Program.Bytes()},
		{"remote_id", t.Remote},
		{"place", t.Place},
		{"org_id", tx.org.Bytes()},
		{"modified", t.Modified},
		{"report_id", t.Report},
		{"sent", t.Sent},
		{"again_at", micros(t.AgainAt)},
	}

	_, err := tx.upsert(ctx, "adr_telemetry", row, rewrite{
		key:  []string{"program_id", "remote_id", "place"},
		keep: []string{"org_id"},
	})

	return err
}
