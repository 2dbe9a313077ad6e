package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// ADRObject returns the one object that is looked for, or a NotFound failure.
func (tx *Tx) ADRObject(ctx context.Context, q flex.ADRSearch) (flex.ADRObject, error) {
	q.Limit = 1
	found, err := tx.ADRObjects(ctx, q)
	if err == nil && len(found) == 0 {
		err = flex.Fail(flex.NotFound, errNoADRObject)
	}
	if err != nil {
		return flex.ADRObject{}, err
	}

	return found[0], nil
}

// ADRObjects returns the objects that are looked for, in the order in which they were made.
func (tx *Tx) ADRObjects(
	ctx context.Context,
	q flex.ADRSearch,
) ([]flex.ADRObject, error) {
	w := adrSearch{q}.where(tx)
	w.text.WriteString(" ORDER BY o.id")
	if q.Limit > 0 {
		w.text.WriteString(" LIMIT " + w.param(q.Limit) + " OFFSET " +
			w.param(q.Skip))
	}

	found, err := rows(
		ctx,
		tx.conn,
		scanADRObject,
		`SELECT `+adrColumns+` FROM adr_object o WHERE `+w.text.String(),
		w.args...,
	)
	if err != nil {
		return nil, err
	}

	return found, tx.readADRTargets(ctx, found)
}

// CountADRObjects returns how many objects there are.
func (tx *Tx) CountADRObjects(
	ctx context.Context,
	q flex.ADRSearch,
) (int, error) {
	w := adrSearch{q}.where(tx)

	var n int
	err := tx.row(
		ctx,
		`SELECT count(*) FROM adr_object o WHERE `+w.text.String(),
		w.args...,
	).Scan(&n)

	return n, err
}

func (tx *Tx) readADRTargets(ctx context.Context, objects []flex.ADRObject) error {
	at := map[flex.ADRObjectID]*flex.ADRObject{}
	ids := make([]flex.ADRObjectID, len(objects))
	for i := range objects {
		ids[i] = objects[i].ID
		at[ids[i]] = &objects[i]
	}

	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in(nil, chunk)
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var target string
				var id flex.ADRObjectID
				err := s.Scan(&id, &target)
				if o := at[id]; o != nil {
					o.Targets = append(o.Targets, target)
				}

				return err
			},
			`SELECT object_id, target FROM adr_target WHERE object_id IN `+
				list+` ORDER BY object_id, target`,
			args...,
		)

		if err != nil {
			return err
		}
	}

	return nil
}

// ADRSubscriber is a subscription whose client still has access.
type ADRSubscriber struct {
	flex.ADRObject
	Business bool // its client runs programs, and reads everything
}

// ADRSubscribers returns the organisation's subscriptions for a kind of object, of clients
// that still have access.
func (tx *Tx) ADRSubscribers(
	ctx context.Context,
	kind flex.ADRKind,
) ([]ADRSubscriber, error) {
	found, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (ADRSubscriber, error) {
			var roles string
			var v ADRSubscriber
			var err error
			v.ADRObject, err = scanADRObject(trailing{s, &roles})
			v.Business = slices.Contains(
				splitRoles(roles),
				flex.OpenADRBusiness,
			)

			return v, err
		},
		`SELECT `+adrColumns+
			`, c.roles FROM adr_object o JOIN credential c ON c.username = o.client_id AND c.org_id = o.org_id
		WHERE o.org_id = $1 AND o.kind = $2 AND o.objects LIKE $3 AND c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > $4) ORDER BY o.id`,
		tx.org.Bytes(),
		string(flex.ADRSubscription),
		"% "+string(kind)+" %",
		micros(tx.db.Now()),
	)

	if err != nil {
		return nil, err
	}

	objects := make([]flex.ADRObject, len(found))
	for i := range found {
		objects[i] = found[i].ADRObject
	}

	if err := tx.readADRTargets(ctx, objects); err != nil {
		return nil, err
	}

	for i := range found {
		found[i].ADRObject = objects[i]
	}

	return found, nil
}

// trailing is a row with one more column than its reader knows.
type trailing struct {
	scanner
	last any
}

// Scan reads the columns.
func (t trailing) Scan(dest ...any) error {
	return t.scanner.Scan(append(dest, t.last)...)
}

// adrSearch is a search as SQL.
type adrSearch struct{ flex.ADRSearch }

// where is the condition that an object, named o, is looked for.
func (q adrSearch) where(tx *Tx) *where {
	w := &where{}
	w.text.WriteString("o.org_id = " + w.param(tx.org.Bytes()) +
		" AND o.kind = " + w.param(string(q.Kind)))
	for _, by := range []struct {
		column string
		id     flex.ADRObjectID
	}{{"id", q.ID}, {"program_id", q.Program}, {"event_id", q.Event}, {"ven_id", q.VEN}} {
		if !by.id.IsZero() {
			w.text.WriteString(" AND o." + by.column + " = " +
				w.param(by.id.Bytes()))
		}
	}

	for _, by := range []struct{ column, text string }{
		{"name", q.Name},
		{"client_id", q.Client},
		{"client_name", q.ClientName},
	} {
		if by.text != "" {
			w.text.WriteString(" AND o." + by.column + " = " + w.param(by.text))
		}
	}

	q.aimed(w)
	if q.Active {
		w.text.WriteString(" AND (o.ends_at IS NULL OR o.ends_at > " +
			w.param(micros(tx.now)) + ")")
	}
	if q.VisibleTo != "" {
		q.visible(w)
	}

	return w
}

// aimed adds that an object has one of the targets, and a subscription one of the kinds of object.
func (q adrSearch) aimed(w *where) {
	if len(q.Targets) > 0 {
		w.text.WriteString(" AND EXISTS (SELECT 1 FROM adr_target t WHERE t.object_id = o.id")
		targets := make([]any, len(q.Targets))
		for i, target := range q.Targets {
			targets[i] = target
		}
		w.inValues("t.target", targets)
		w.text.WriteString(")")
	}

	if len(q.Objects) > 0 {
		some := make([]string, len(q.Objects))
		for i, o := range q.Objects {
			some[i] = "o.objects LIKE " + w.param("% "+o+" %")
		}
		w.text.WriteString(" AND (" + strings.Join(some, " OR ") + ")")
	}
}

// visible adds that a VEN may read an object: its own, and programs and events that are for
// everybody or for a target that is its own or its resources'. An event is read by who reads
// its program.
func (q adrSearch) visible(w *where) {
	client := w.param(q.VisibleTo)
	aimed := func(object string) {
		fmt.Fprintf(
			&w.text,
			` AND (NOT EXISTS (SELECT 1 FROM adr_target t WHERE t.object_id = %[1]s) OR EXISTS (SELECT 1 FROM adr_target t
			JOIN adr_target mine ON mine.target = t.target JOIN adr_object v ON v.id = mine.object_id
			WHERE t.object_id = %[1]s AND v.org_id = o.org_id AND v.client_id = %[2]s AND v.kind IN ('VEN', 'RESOURCE')))`,
			object,
			client,
		)
	}

	switch q.Kind {
	case flex.ADREvent:
		aimed("o.id")
		aimed("o.program_id")
	case flex.ADRProgram:
		aimed("o.id")
	default:
		w.text.WriteString(" AND o.client_id = " + client)
	}
}
