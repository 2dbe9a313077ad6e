package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law(
		"an OpenADR server that is asked has the program that its events are kept under",
		`
		SELECT u.program_id AS what FROM adr_upstream u LEFT JOIN adr_object o ON o.id = u.program_id AND o.org_id = u.org_id AND o.kind = 'PROGRAM'
		WHERE o.id IS NULL`,
	)
	_ = law(
		"an event that is kept of an OpenADR server is of one that is asked",
		`
		SELECT m.event_id AS what FROM adr_mirror m LEFT JOIN adr_upstream u ON u.program_id = m.program_id AND u.org_id = m.org_id
		WHERE u.program_id IS NULL`,
	)
)

// ADRUpstream is a program of another party's OpenADR server, of which the organisation is a VEN.
type ADRUpstream struct {
	Program  flex.ADRObjectID // under which its events are kept here
	Org      flex.OrgID
	Name     string // of the program here, and of the VEN there
	URL      string
	TokenURL string
	Client   string
	Secret   flex.Secret // it lies sealed
	Remote   string      // the program's id there
	Poll     time.Duration
	// how long it may not be heard before it is an exception
	Silence time.Duration
	DueAt   time.Time
	HeardAt time.Time // at first when it was added
	MadeAt  time.Time
	// since when the VEN is registered there; zero: it is not
	KnownAt time.Time
	Error   string // of the latest attempt
	// where that server reaches this flexd; empty: it does not call
	Callback string
	// whether it has what each asset draws, by itself, where it asks for no aggregate
	PerAsset     bool
	Subscription string    // its id there; empty until it is made
	SubscribedAt time.Time // when it was last seen there
	NumEvents    int       // that are stored of it
}

// AnsweredAt is when it answered last; zero if it never did.
func (u *ADRUpstream) AnsweredAt() time.Time { return answeredAt(u.HeardAt, u.MadeAt) }

// answeredAt is when a server answered last that was added at an instant; zero if it was not
// heard since.
func answeredAt(heard, made time.Time) time.Time {
	if heard.After(made) {
		return heard
	}
	return time.Time{}
}

const upstreamColumns = `program_id, org_id, name, url, token_url, client_id, sealed, remote_id, poll_s, silence_s, due_at, heard_at, made_at, registered, error, callback, per_asset, subscription, subscribed,
	(SELECT count(*) FROM adr_mirror m WHERE m.program_id = adr_upstream.program_id)`

func (c conn) scanUpstream(s scanner) (ADRUpstream, error) {
	var sealed []byte
	var poll, silence int64
	var u ADRUpstream
	err := s.Scan(
		&u.Program,
		&u.Org,
		&u.Name,
		&u.URL,
		&u.TokenURL,
		&u.Client,
		&sealed,
		&u.Remote,
		&poll,
		&silence,
		instant{&u.DueAt},
		instant{&u.HeardAt},
		instant{&u.MadeAt},
		instant{&u.KnownAt},
		&u.Error,
		&u.Callback,
		&u.PerAsset,
		&u.Subscription,
		instant{&u.SubscribedAt},
		&u.NumEvents,
	)

	if err != nil {
		return u, err
	}

	u.Poll, u.Silence = time.Duration(poll)*time.Second, time.Duration(silence)*time.Second
	plain, err := c.unseal(
		sealedUpstream,
		u.Org,
		u.Program.Bytes(),
		sealed,
	)
	u.Secret = flex.Secret(plain)

	return u, err
}

// AddADRUpstream has a server asked from now on.
func (tx *Tx) AddADRUpstream(ctx context.Context, u *ADRUpstream) error {
	sealed, err := tx.seal(
		sealedUpstream,
		tx.org,
		u.Program.Bytes(),
		[]byte(u.Secret.Reveal()),
	)

	if err != nil {
		return err
	}

	now := micros(tx.db.Now())
	row := []value{
		{"program_id", u.Program.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"name", u.Name},
		{"url", u.URL},
		{"token_url", u.TokenURL},
		{"client_id", u.Client},
		{"sealed", sealed},
		{"remote_id", u.Remote},
		{"poll_s", int64(u.Poll / time.Second)},
		{"silence_s", int64(u.Silence / time.Second)},
		{"made_at", now},
		{"due_at", now},
		{"heard_at", now},
		{"error", ""},
		{"callback", u.Callback},
		{"per_asset", u.PerAsset},
	}

	return tx.insert(ctx, "adr_upstream", row)
}

// ADRUpstreams returns the servers that the organisation asks, by name; of one program alone
// if it is given.
func (tx *Tx) ADRUpstreams(
	ctx context.Context,
	program flex.ADRObjectID,
) ([]ADRUpstream, error) {
	where, args := `WHERE org_id = $1`, []any{tx.org.Bytes()}
	if !program.IsZero() {
		where, args = where+` AND program_id = $2`, append(args, program.Bytes())
	}

	return rows(
		ctx,
		tx.conn,
		tx.scanUpstream,
		`SELECT `+upstreamColumns+` FROM adr_upstream `+where+` ORDER BY name`,
		args...,
	)
}

// DropADRUpstream has a server asked no more.
func (tx *Tx) DropADRUpstream(ctx context.Context, program flex.ADRObjectID) error {
	for _, table := range []string{"adr_telemetry", "adr_mirror", "adr_upstream"} {
		_, err := tx.exec(
			ctx,
			`DELETE FROM `+table+` WHERE org_id = $1 AND program_id = $2`,
			tx.org.Bytes(),
			program.Bytes(),
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// TakeADRUpstreams returns the servers that are due to be asked, or have called, and has each
// asked again after its time, whatever becomes of this attempt. The busy ones are being asked:
// that they have called waits for the end, or their turn, as what they answer would not be
// taken any more.
func (all *All) TakeADRUpstreams(
	ctx context.Context,
	busy ...flex.ADRObjectID,
) ([]ADRUpstream, error) {
	due, err := rows(
		ctx,
		all.conn,
		all.scanUpstream,
		`SELECT `+upstreamColumns+
			` FROM adr_upstream WHERE (due_at <= $1 OR called_at IS NOT NULL)`+
			atRest("adr_upstream")+` ORDER BY due_at, program_id`,
		micros(all.now),
	)

	if err != nil {
		return nil, err
	}

	var taken []ADRUpstream
	for _, u := range due {
		if slices.Contains(busy, u.Program) && u.DueAt.After(all.now) {
			continue
		}

		next := all.now.Add(u.Poll).Truncate(time.Microsecond)
		n, err := all.exec(
			ctx,
			`UPDATE adr_upstream SET due_at = $3, called_at = NULL WHERE program_id = $1 AND due_at = $2`,
			u.Program.Bytes(),
			micros(u.DueAt),
			micros(next),
		)

		if err != nil {
			return nil, err
		}

		if n > 0 {
			u.DueAt = next
			taken = append(taken, u)
		}
	}

	return taken, nil
}

// ADRUpstreamAsked notes what came of asking a server: when it was heard, since when the VEN
// is known there, and what was wrong. If its turn has come again since, that is the next
// asker's to say.
func (all *All) ADRUpstreamAsked(ctx context.Context, u *ADRUpstream) error {
	_, err := all.exec(
		ctx,
		`UPDATE adr_upstream SET error = $2, heard_at = $3, registered = $4, subscription = $6, subscribed = $7 WHERE program_id = $1 AND due_at = $5`,
		u.Program.Bytes(),
		flex.Keepable(u.Error),
		micros(u.HeardAt),
		micros(u.KnownAt),
		micros(u.DueAt),
		u.Subscription,
		micros(u.SubscribedAt),
	)

	return err
}

// ADRUpstream returns the server of a program; false if there is none.
func (all *All) ADRUpstream(
	ctx context.Context,
	program flex.ADRObjectID,
) (ADRUpstream, bool, error) {
	found, err := rows(
		ctx,
		all.conn,
		all.scanUpstream,
		`SELECT `+upstreamColumns+` FROM adr_upstream WHERE program_id = $1`,
		program.Bytes(),
	)
	if err != nil || len(found) == 0 {
		return ADRUpstream{}, false, err
	}

	return found[0], true, nil
}

// ADRUpstreamCalled has a server asked as soon as may be.
func (all *All) ADRUpstreamCalled(
	ctx context.Context,
	program flex.ADRObjectID,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE adr_upstream SET called_at = $2 WHERE program_id = $1 AND called_at IS NULL`,
		program.Bytes(),
		micros(all.now),
	)

	return err
}

// SilentADRUpstreams returns how many servers were not heard for too long, or answer what cannot be
// carried out, and says what is wrong with the first.
func (all *All) SilentADRUpstreams(
	ctx context.Context,
	org flex.OrgID,
) (int, SilentADRUpstream, error) {
	where, args := `FROM adr_upstream WHERE (error <> '' AND heard_at >= due_at - poll_s * 1000000 OR heard_at + silence_s * 1000000 <= $1)`, []any{micros(all.Now())}
	if !org.IsZero() {
		where, args = where+` AND org_id = $2`, append(args, org.Bytes())
	}

	var n int
	if err := all.row(
		ctx,
		`SELECT count(*) `+where,
		args...,
	).Scan(&n); err != nil || n == 0 {
		return 0, SilentADRUpstream{}, err
	}

	var heard, made time.Time
	var first SilentADRUpstream
	err := all.row(
		ctx,
		`SELECT org_id, name, error, heard_at, made_at `+where+` ORDER BY heard_at, name LIMIT 1`,
		args...,
	).Scan(
		&first.Org,
		&first.Name,
		&first.Problem,
		instant{&heard},
		instant{&made},
	)

	first.AnsweredAt = answeredAt(heard, made)
	if first.Problem == "" {
		first.Problem = "it was not asked: does a flexd serve run?"
	}

	return n, first, err
}

// SilentADRUpstream is a server that was not heard for too long, or has events that cannot be read.
type SilentADRUpstream struct {
	Org        flex.OrgID
	Name       string
	Problem    string
	AnsweredAt time.Time // zero if it never did
}

// ADRMirror is an event of a server that is asked, and the one that is stored of it.
type ADRMirror struct {
	Program  flex.ADRObjectID
	Remote   string
	Event    flex.ADRObjectID
	Modified string
	Report   string // the report's id there; empty until it is sent
	// when the report that was sent was written; zero until it is
	ReportedAt time.Time
}

// ADRMirrors returns the events that are stored of a server.
func (tx *Tx) ADRMirrors(
	ctx context.Context,
	program flex.ADRObjectID,
) ([]ADRMirror, error) {
	return rows(ctx, tx.conn, func(s scanner) (ADRMirror, error) {
		var m ADRMirror
		err := s.Scan(
			&m.Program,
			&m.Remote,
			&m.Event,
			&m.Modified,
			&m.Report,
			instant{&m.ReportedAt},
		)

		return m, err
	}, `SELECT program_id, remote_id, event_id, modified, report_id, reported_at FROM adr_mirror WHERE org_id = $1 AND program_id = $2 ORDER BY remote_id`,
		tx.org.Bytes(), program.Bytes())
}

// SetADRMirror records which event is kept of another.
func (tx *Tx) SetADRMirror(ctx context.Context, m *ADRMirror) error {
	row := []value{
		{"program_id", m.Program.Bytes()},
		{"remote_id", m.Remote},
		{"org_id", tx.org.Bytes()},
		{"event_id", m.Event.Bytes()},
		{"modified", m.Modified},
		{"report_id", m.Report},
		{"reported_at", micros(m.ReportedAt)},
	}

	_, err := tx.upsert(ctx, "adr_mirror", row, rewrite{
		key:  []string{"program_id", "remote_id"},
		keep: []string{"org_id"},
	})

	return err
}

// DropADRMirror deletes which event is kept of another, and what was reported of it.
func (tx *Tx) DropADRMirror(ctx context.Context, m *ADRMirror) error {
	for _, table := range []string{"adr_telemetry", "adr_mirror"} {
		_, err := tx.exec(
			ctx,
			`DELETE FROM `+table+` WHERE org_id = $1 AND program_id = $2 AND remote_id = $3`,
			tx.org.Bytes(),
			m.Program.Bytes(),
			m.Remote,
		)
		if err != nil {
			return err
		}
	}

	return nil
}
