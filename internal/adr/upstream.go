package adr

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Bounds of polling another party's server.
const (
	PollLeast, PollMost = 10 * time.Second, time.Hour
	SilenceMost         = 7 * 24 * time.Hour

	upstreamReports = 1000 // of an event and a client, that one is looked for among
	upstreamEvents  = 1000 // of a program at most
	// to ask a server, with all that is read and sent
	upstreamTime = 60 * time.Second
	// while some are asked, it is looked so often whether others are due
	upstreamLook = 2 * time.Second
	// after an event's end, if the server no longer has it
	mirrorsKept = 90 * 24 * time.Hour
	// an event that is gone so shortly before its end is over by the server's clock, and was
	// not cancelled
	clockSpare = 30 * time.Second
)

// AddUpstream makes the organisation a VEN of another party's server: the events of one of its
// programs are copied to a program of the organisation's own, whose id is set here. If that is
// bound like any other, the events are carried out. A name that is in use is a Conflict, a
// server that cannot be polled is Malformed.
func (s *Service) AddUpstream(
	ctx context.Context,
	org flex.OrgID,
	u *store.ADRUpstream,
) error {
	if err := s.checkUpstream(u); err != nil {
		return err
	}

	document := map[string]any{"programName": u.Name}
	_, err := rules[flex.ADRProgram].normalise("body", document)
	if err != nil {
		return err
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		existing, err := tx.ADRObjects(ctx, flex.ADRSearch{
			Kind:  flex.ADRProgram,
			Name:  u.Name,
			Limit: 1,
		})
		if err == nil && len(existing) > 0 {
			err = flex.Fail(
				flex.Conflict,
				"another program is named %q: give another name, or remove the server that has it (flexd openadr upstream list names them)",
				u.Name,
			)
		}
		if err != nil {
			return err
		}

		o, err := s.save(ctx, tx, flexdOf(org), nil, flex.ADRProgram, document)
		if err != nil {
			return err
		}

		u.Program = o.ID
		if err := s.notify(ctx, tx, &o, opCreate); err != nil {
			return err
		}
		return tx.AddADRUpstream(ctx, u)
	})
}

// checkUpstream refuses a server that cannot be polled, and sets the defaults.
func (s *Service) checkUpstream(u *store.ADRUpstream) error {
	u.URL = strings.TrimSuffix(u.URL, "/")
	if u.TokenURL == "" {
		u.TokenURL = u.URL + "/auth/token"
	}

	addresses := []string{u.URL, u.TokenURL}
	if u.Callback != "" {
		addresses = append(addresses, u.Callback)
	}

	for _, to := range addresses {
		if err := s.checkServer(to); err != nil {
			return err
		}
	}

	if u.Client == "" || u.Secret == "" {
		return flex.Fail(
			flex.Malformed,
			"the server gives a client's id and secret: give both",
		)
	}

	if u.Poll < PollLeast || u.Poll > PollMost {
		return flex.Fail(
			flex.Malformed,
			"it is asked every %s: it should be every %s to %s",
			flex.Lasting(u.Poll),
			flex.Lasting(PollLeast),
			flex.Lasting(PollMost),
		)
	}

	if u.Silence < 2*u.Poll || u.Silence > SilenceMost {
		return flex.Fail(
			flex.Malformed,
			"the silence is %s: it should be twice the time between two polls, which is %s, to %s",
			flex.Lasting(u.Silence),
			flex.Lasting(2*u.Poll),
			flex.Lasting(SilenceMost),
		)
	}

	_, err := id.normalise("the program", u.Remote)

	return err
}

// flexdOf returns flexd itself as a client of an organisation's objects.
func flexdOf(org flex.OrgID) Client {
	return Client{
		Org:      org,
		ID:       Reporter,
		Business: true,
	}
}

// checkServer checks that a server's address may be called.
func (s *Service) checkServer(to string) error {
	u, err := url.Parse(to)
	isPlain := err == nil && s.PlainHTTP && u.Scheme == "http"
	if err != nil || u.Hostname() == "" || u.User != nil {
		return flex.Fail(
			flex.Malformed,
			"%q is no URL such as https://vtn.example.com/openadr3/3.1.0",
			to,
		)
	}

	if u.Scheme != "https" && !isPlain {
		return flex.Fail(
			flex.Malformed,
			"%q must begin with https://; http:// is for private networks, where the operator allows it",
			to,
		)
	}

	if s.Out == nil {
		return nil
	}

	err = cmp.Or(egress.CheckPort(u.Port()), s.Out.CheckHost(u.Hostname()))
	if err != nil {
		return flex.Fail(flex.Malformed, "%q: %v", to, err)
	}

	return nil
}

// Upstreams returns the servers that the organisation is a VEN of.
func (s *Service) Upstreams(
	ctx context.Context,
	org flex.OrgID,
) ([]store.ADRUpstream, error) {
	var found []store.ADRUpstream
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		found, err = tx.ADRUpstreams(ctx, flex.ADRObjectID{})
		return err
	})

	return found, err
}

// RemoveUpstream ends the polling of a server, and deletes its program and events here: their
// orders are withdrawn. It is NotFound if the program is of no server.
func (s *Service) RemoveUpstream(
	ctx context.Context,
	org flex.OrgID,
	program flex.ADRObjectID,
) error {
	var removed store.ADRUpstream
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		found, err := tx.ADRUpstreams(ctx, program)
		if err == nil && len(found) == 0 {
			err = flex.Fail(
				flex.NotFound,
				"the program %s is of no other server: flexd openadr upstream list lists those that are",
				program,
			)
		}
		if err != nil {
			return err
		}

		removed = found[0]
		if err := tx.DropADRUpstream(ctx, program); err != nil {
			return err
		}
		return s.dropProgram(ctx, tx, program)
	})
	if err == nil {
		s.unsubscribe(ctx, &removed)
	}

	return err
}

// dropProgram deletes a program, with its events and the subscriptions to it. The orders are
// withdrawn once, at the end.
func (s *Service) dropProgram(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
) error {
	events, err := tx.ADRObjects(ctx, flex.ADRSearch{
		Kind:    flex.ADREvent,
		Program: program,
	})
	if err != nil {
		return err
	}

	for i := range events {
		if err := s.forget(ctx, tx, &events[i]); err != nil {
			return err
		}
	}

	stored, err := tx.ADRObject(ctx, flex.ADRSearch{
		Kind: flex.ADRProgram,
		ID:   program,
	})
	if err != nil {
		return err
	}
	if err := checkUnused(ctx, tx, &stored); err != nil {
		return err
	}

	o, err := objectOf(&stored)
	if err != nil {
		return err
	}
	if err := s.notify(ctx, tx, &o, opDelete); err != nil {
		return err
	}

	return drop(ctx, tx, &stored)
}

// forget deletes an event and notifies its subscribers. Its orders stay until the program's
// orders are reconciled.
func (s *Service) forget(
	ctx context.Context,
	tx *store.Tx,
	event *flex.ADRObject,
) error {
	o, err := objectOf(event)
	if err != nil {
		return err
	}
	if err := s.notify(ctx, tx, &o, opDelete); err != nil {
		return err
	}

	return tx.DropADRObject(ctx, event.ID)
}

// checkOwn refuses to change a copy of another party's object, which the next poll would
// overwrite.
func checkOwn(ctx context.Context, tx *store.Tx, o *flex.ADRObject) error {
	program := o.Program
	switch o.Kind {
	case flex.ADRProgram:
		program = o.ID
	case flex.ADREvent:
	default:
		return nil
	}

	found, err := tx.ADRUpstreams(ctx, program)
	if err == nil && len(found) > 0 {
		err = flex.Fail(
			flex.Forbidden,
			"the program is another server's, and so are its events: only that server changes them",
		)
	}

	return err
}

// PollUpstreams polls the servers that are due for their events, and reports to them. One that
// does not answer delays no other, not even one that becomes due meanwhile. It is safe to run
// twice and on several machines.
func (s *Service) PollUpstreams(ctx context.Context) (worker.Report, error) {
	last := time.Now().Add(upstreamTime)
	ticker := time.NewTicker(upstreamLook)
	defer ticker.Stop()

	var r worker.Report
	ended := make(chan error)
	due, err := s.dueUpstreams(ctx)
	for running := 0; ; {
		for i := range due {
			u := &due[i]
			s.polling.Store(u.Program, true)
			go func() { ended <- s.askAndNote(ctx, u) }()
		}

		running += len(due)
		r.Count += len(due)
		due = nil
		if running == 0 {
			return r, err
		}

		var wrong error
		select {
		case wrong = <-ended:
			running--
		case <-ticker.C:
			if time.Now().Before(last) { // the next run asks the others
				due, wrong = s.dueUpstreams(ctx)
			}
		}

		err = cmp.Or(wrong, err)
	}
}

// pollUpstream copies the events of a server, and reports their results. An error of the server
// is Unavailable or Malformed.
func (s *Service) pollUpstream(ctx context.Context, u *store.ADRUpstream) error {
	r := remote{Service: s, upstream: u}
	events, err := r.events(ctx)
	if err != nil {
		return err
	}

	// In another unit an event would ask for something else.
	descriptors, known, descriptorErr := r.descriptors(ctx)
	if descriptorErr != nil && !nameUnits(events) {
		return descriptorErr
	}

	unread, err := s.mirror(ctx, u, events, func(m *mirroring) error {
		if !known {
			return nil
		}
		return m.storeDescriptors(ctx, descriptors)
	})
	if err != nil {
		return err
	}

	u.HeardAt = s.DB.Now()
	for _, step := range []func(context.Context) error{
		r.register,
		r.subscribe,
		r.reportOrders,
		r.telemetry,
	} {
		wrong := step(ctx)
		if wrong != nil && (err == nil || flex.KindOf(wrong) == flex.Internal) {
			err = wrong
		}
	}

	return cmp.Or(err, unread, descriptorErr)
}

// checkStillPolled fails if the server was removed during the poll, or its next turn has come: then
// another poll may have stored newer events.
func checkStillPolled(ctx context.Context, tx *store.Tx, u *store.ADRUpstream) error {
	upstreams, err := tx.ADRUpstreams(ctx, u.Program)
	if err == nil && (len(upstreams) == 0 || !upstreams[0].DueAt.Equal(u.DueAt)) {
		err = flex.Fail(
			flex.Unavailable,
			"its answer came too late to be kept: its turn to be asked came again, or it was removed",
		)
	}

	return err
}

// mirror copies the events of a server in one transaction, and records that the party that
// limits a constraint group was heard. An event that cannot be read stays as it was; unread
// says why. The argument program is called first.
func (s *Service) mirror(
	ctx context.Context,
	u *store.ADRUpstream,
	found map[string]map[string]any,
	program func(*mirroring) error,
) (unread, err error) {
	err = s.DB.Write(ctx, u.Org, func(tx *store.Tx) error {
		unread = nil
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		if err := checkStillPolled(ctx, tx, u); err != nil {
			return err
		}

		m := mirroring{
			Service:  s,
			tx:       tx,
			upstream: u,
			events:   map[flex.ADRObjectID]*flex.ADRObject{},
		}

		if err := m.read(ctx); err != nil {
			return err
		}
		if err := program(&m); err != nil {
			return err
		}

		var wrong error
		unread, wrong = m.storeEvents(ctx, found)
		if wrong != nil {
			return wrong
		}

		if err := m.dropOthers(ctx, found); err != nil {
			return err
		}
		if err := m.reorder(ctx); err != nil {
			return err
		}
		return noteLinkAlive(ctx, tx, u.Program)
	})

	return unread, err
}

// inOrder returns the names of a server's events in the order in which they were created,
// since of two events with one priority the newer counts.
func inOrder(found map[string]map[string]any) []string {
	createdAt := func(name string) time.Time {
		text, _ := found[name]["createdDateTime"].(string)
		at, _ := time.Parse(time.RFC3339, text) // without one it is the oldest

		return at
	}

	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(createdAt(a).Compare(createdAt(b)), cmp.Compare(a, b))
	})
}

// mirroring is the copying of a server's events, in a transaction.
type mirroring struct {
	*Service
	tx          *store.Tx
	upstream    *store.ADRUpstream
	mirrors     map[string]store.ADRMirror // by the event's id there
	events      map[flex.ADRObjectID]*flex.ADRObject
	changed     bool               // an event is new, changed or gone
	endedEvents []flex.ADRObjectID // those of them that are over already
}

// note records a stored event, whose orders are reconciled after all are stored.
func (m *mirroring) note(o *Object) {
	m.changed = true
	if !o.EndsAt.IsZero() && !o.EndsAt.After(m.tx.Now()) {
		m.endedEvents = append(m.endedEvents, o.ID)
	}
}

// reorder reconciles the orders of the changed events. It is done once for all of them,
// because each time all events of the program are compared.
func (m *mirroring) reorder(ctx context.Context) error {
	for _, event := range m.endedEvents {
		if err := reconcileOrders(ctx, m.tx, m.upstream.Program, event); err != nil {
			return err
		}
	}

	if !m.changed {
		return nil
	}

	return reconcileOrders(ctx, m.tx, m.upstream.Program, flex.ADRObjectID{})
}

func (m *mirroring) read(ctx context.Context) error {
	events, err := m.tx.ADRObjects(ctx, flex.ADRSearch{
		Kind:    flex.ADREvent,
		Program: m.upstream.Program,
	})
	if err != nil {
		return err
	}
	for i := range events {
		m.events[events[i].ID] = &events[i]
	}

	stored, err := m.tx.ADRMirrors(ctx, m.upstream.Program)
	m.mirrors = map[string]store.ADRMirror{}
	for _, one := range stored {
		m.mirrors[one.Remote] = one
	}

	return err
}

// storeEvents stores a server's events. One that cannot be read stays as it was; unread says
// why.
func (m *mirroring) storeEvents(
	ctx context.Context,
	found map[string]map[string]any,
) (unread, err error) {
	for _, remote := range inOrder(found) {
		err := m.storeEvent(ctx, remote, found[remote])
		kind := flex.KindOf(err)
		if kind == flex.Malformed || kind == flex.Conflict {
			unread = flex.Fail(
				flex.Malformed,
				"its event %q cannot be kept: %v",
				remote,
				err,
			)

			continue
		}
		if err != nil {
			return nil, err
		}
	}

	return unread, nil
}

// storeEvent stores a server's event, if it is new or changed.
func (m *mirroring) storeEvent(
	ctx context.Context,
	remote string,
	fields map[string]any,
) error {
	document := maps.Clone(fields)
	for _, name := range []string{
		"id",
		"objectType",
		"createdDateTime",
		"modificationDateTime",
		"targets",
	} {
		delete(document, name) // whom it is for was that server's to say
	}

	document["programID"] = m.upstream.Program.String()

	text, err := json.Marshal(document)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(text)
	stored := m.mirrors[remote]
	previous := m.events[stored.Event]
	before := stored.Modified
	stored.Modified = hex.EncodeToString(sum[:])
	if previous != nil && before == stored.Modified {
		return nil
	}

	o, err := m.save(
		ctx,
		m.tx,
		flexdOf(m.upstream.Org),
		previous,
		flex.ADREvent,
		document,
	)

	if err != nil {
		return err
	}

	m.note(&o)
	if err := m.notify(ctx, m.tx, &o, operationOf(previous)); err != nil {
		return err
	}

	stored.Program, stored.Remote = m.upstream.Program, remote
	stored.Event = o.ID

	return m.tx.SetADRMirror(ctx, &stored)
}

// dropOthers deletes the events that a server no longer has, because it cancelled them or they
// have been over for long.
func (m *mirroring) dropOthers(
	ctx context.Context,
	found map[string]map[string]any,
) error {
	for remote, stored := range m.mirrors {
		if _, isListed := found[remote]; isListed {
			continue
		}

		e := m.events[stored.Event]
		ended := e != nil && !e.EndsAt.IsZero() && !e.EndsAt.After(m.tx.Now().Add(clockSpare))
		if ended && e.EndsAt.Add(mirrorsKept).After(m.tx.Now()) {
			continue // what became of it is still to be reported
		}

		if e != nil {
			m.changed = true
			if err := m.forget(ctx, m.tx, e); err != nil {
				return err
			}
		}
		if err := m.tx.DropADRMirror(ctx, &stored); err != nil {
			return err
		}
	}

	return nil
}
