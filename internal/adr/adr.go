package adr

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Bounds of an organisation's objects.
const (
	ObjectsMax       = 100_000 // of a kind
	SubscriptionsMax = 1_000
	VENShare         = 2  // the part of them, a half, that one VEN may have
	PageMax          = 50 // objects of an answer

	// NoticesMax is how many bytes the notices of one change by a client may have together:
	// each subscriber is sent the object.
	NoticesMax = 64 << 20
	// NoticesShare is the part of them, an eighth, after which one VEN is sent no further
	// notice of the change: however often it subscribed, others' objects can be written.
	NoticesShare = 8
)

// Service manages OpenADR objects. Its zero value with a DB stores them; Out is needed to
// notify subscribers.
type Service struct {
	DB        *store.DB
	Out       *egress.Client
	PlainHTTP bool // callbacks may be http://, for private networks

	// Outcome says what became of an instruction; it is needed to report on events of bound
	// programs.
	Outcome func(ctx context.Context, org flex.OrgID, id flex.InstructionID) (*Outcome, error)

	// Fleet says what the assets of a scope drew, or will draw, in each of some spans; it is
	// needed for the reports that another party's server asks for.
	Fleet func(ctx context.Context, org flex.OrgID, scope flex.Scope, spans []flex.Span) ([]FleetUse, error)

	// Assets says the same of each asset, for servers that are to have it so.
	Assets func(ctx context.Context, org flex.OrgID, scope flex.Scope, spans []flex.Span) ([]AssetUse, error)

	tokens   sync.Map // of other parties' servers, by the program here
	silences sync.Map // each a silence, by the address that did not answer
	polling  sync.Map // other parties' servers that are being asked, by the program here
}

// Client is the client that makes a request.
type Client struct {
	Org      flex.OrgID
	ID       string
	Business bool // business logic; else a VEN
}

// scope narrows a search to what the client may read.
func (c Client) scope(q flex.ADRSearch) flex.ADRSearch {
	if !c.Business {
		q.VisibleTo = c.ID
	}
	return q
}

// Object is an OpenADR object.
type Object struct {
	flex.ADRObject
	Fields map[string]any // of its document
}

// mayWrite lists the kinds of objects that each of the two roles may write.
var mayWrite = map[bool]map[flex.ADRKind]bool{
	true: {
		flex.ADRProgram:      true,
		flex.ADREvent:        true,
		flex.ADRSubscription: true,
		flex.ADRVEN:          true,
		flex.ADRResource:     true,
	},
	false: {flex.ADRReport: true, flex.ADRSubscription: true, flex.ADRVEN: true, flex.ADRResource: true},
}

// CheckWrite fails with Forbidden if the client may not write objects of a kind at all.
func (c Client) CheckWrite(kind flex.ADRKind) error {
	if mayWrite[c.Business][kind] {
		return nil
	}
	if kind == flex.ADRReport {
		return flex.Fail(flex.Forbidden, "only a VEN writes reports")
	}

	return flex.Fail(
		flex.Forbidden,
		"only business logic writes objects of the kind %s",
		kind,
	)
}

// ParseID reads an object's id. One that is not of the specification's form is Malformed, one that
// none of flexd's objects could have is NotFound.
func ParseID(s string) (flex.ADRObjectID, error) {
	if _, err := id.normalise("the id", s); err != nil {
		return flex.ADRObjectID{}, err
	}

	parsed, err := flex.ParseID[struct{}](s)
	if err != nil {
		return flex.ADRObjectID{}, flex.Fail(flex.NotFound, "no such object")
	}

	return flex.ADRObjectID(parsed), nil
}

// Search returns the objects that match and that the client may read.
func (s *Service) Search(
	ctx context.Context,
	c Client,
	q flex.ADRSearch,
) ([]Object, error) {
	var found []Object
	err := s.DB.Read(ctx, c.Org, func(tx *store.Tx) error {
		stored, err := tx.ADRObjects(ctx, c.scope(q))
		if err != nil {
			return err
		}

		for i := range stored {
			o, err := objectOf(&stored[i])
			if err != nil {
				return err
			}
			found = append(found, o)
		}
		return nil
	})

	return found, err
}

// Read returns an object, or a NotFound failure.
func (s *Service) Read(
	ctx context.Context,
	c Client,
	kind flex.ADRKind,
	id flex.ADRObjectID,
) (Object, error) {
	var o Object
	err := s.DB.Read(ctx, c.Org, func(tx *store.Tx) error {
		stored, err := tx.ADRObject(
			ctx,
			c.scope(flex.ADRSearch{Kind: kind, ID: id}),
		)
		if err != nil {
			return err
		}

		o, err = objectOf(&stored)
		return err
	})

	return o, err
}

// objectOf reads an object's document.
func objectOf(stored *flex.ADRObject) (Object, error) {
	var o Object
	o.ADRObject = *stored
	if err := json.Unmarshal([]byte(stored.Document), &o.Fields); err != nil {
		return o, fmt.Errorf("stored OpenADR object %s: %w", stored.ID, err)
	}

	return o, nil
}

// Create stores a new object. It is Malformed if the document violates the specification or
// names an object that does not exist, and a Conflict if the name is in use.
func (s *Service) Create(
	ctx context.Context,
	c Client,
	kind flex.ADRKind,
	document any,
) (Object, error) {
	return s.write(
		ctx,
		c,
		kind,
		document,
		func(context.Context, *store.Tx) (*flex.ADRObject, error) {
			return nil, nil
		},
	)
}

// Replace replaces an object's document. It fails as Create does, and with NotFound.
func (s *Service) Replace(
	ctx context.Context,
	c Client,
	kind flex.ADRKind,
	id flex.ADRObjectID,
	document any,
) (Object, error) {
	return s.write(
		ctx,
		c,
		kind,
		document,
		func(ctx context.Context, tx *store.Tx) (*flex.ADRObject, error) {
			previous, err := tx.ADRObject(
				ctx,
				c.scope(flex.ADRSearch{Kind: kind, ID: id}),
			)

			return &previous, err
		},
	)
}

// write stores an object in place of the previous one, if there is one.
func (s *Service) write(
	ctx context.Context,
	c Client,
	kind flex.ADRKind,
	document any,
	find func(context.Context, *store.Tx) (*flex.ADRObject, error),
) (Object, error) {
	if err := c.CheckWrite(kind); err != nil {
		return Object{}, err
	}

	if _, err := rules[kind].normalise("body", document); err != nil {
		return Object{}, err
	}
	if err := c.checkForm(kind, document); err != nil {
		return Object{}, err
	}

	var o Object
	err := s.DB.Write(ctx, c.Org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		previous, err := find(ctx, tx)
		if err != nil {
			return err
		}

		o, err = s.replace(ctx, tx, c, previous, kind, document)

		return err
	})

	return o, err
}

// replace stores an object in place of the previous one, if there is one, with all
// consequences.
func (s *Service) replace(
	ctx context.Context,
	tx *store.Tx,
	c Client,
	previous *flex.ADRObject,
	kind flex.ADRKind,
	document any,
) (Object, error) {
	readers, err := readersBefore(ctx, tx, previous, document)
	if err != nil {
		return Object{}, err
	}

	formerReaders, err := readableBefore(ctx, tx, previous, document.(map[string]any))
	if err != nil {
		return Object{}, err
	}

	o, err := s.saveOwn(ctx, tx, c, previous, kind, document)
	if err != nil {
		return Object{}, err
	}
	if err := reorder(ctx, tx, previous, &o.ADRObject); err != nil {
		return Object{}, err
	}

	bytesLeft := NoticesMax
	err = s.notifyWithin(ctx, tx, &o, operationOf(previous), &bytesLeft)
	if err != nil {
		return Object{}, err
	}

	bytesLeft = NoticesMax
	if err := notifyDeleted(ctx, tx, previous, readers, &bytesLeft); err != nil {
		return Object{}, err
	}

	return o, notifyFormerReaders(ctx, tx, formerReaders)
}

// operationOf returns the operation for notifications: CREATE, or UPDATE if there was a
// previous object.
func operationOf(previous *flex.ADRObject) string {
	if previous == nil {
		return opCreate
	}
	return opUpdate
}

// save stores an object in place of the previous one, if there is one.
func (s *Service) save(
	ctx context.Context,
	tx *store.Tx,
	c Client,
	previous *flex.ADRObject,
	kind flex.ADRKind,
	document any,
) (Object, error) {
	normalised, err := rules[kind].normalise("body", document) // a copy, which is changed
	if err != nil {
		return Object{}, err
	}

	w := writing{
		Service:  s,
		tx:       tx,
		client:   c,
		previous: previous,
	}

	w.Fields, w.Kind = normalised.(map[string]any), kind
	err = w.save(ctx)

	return w.Object, err
}

// saveOwn is save for a client. It refuses to change an object that another party's server
// owns.
func (s *Service) saveOwn(
	ctx context.Context,
	tx *store.Tx,
	c Client,
	previous *flex.ADRObject,
	kind flex.ADRKind,
	document any,
) (Object, error) {
	if previous != nil {
		if err := checkOwn(ctx, tx, previous); err != nil {
			return Object{}, err
		}
	}

	o, err := s.save(ctx, tx, c, previous, kind, document)
	if err == nil {
		err = checkOwn(ctx, tx, &o.ADRObject)
	}

	return o, err
}

// checkForm checks a VEN or a resource against the form that the client must use.
func (c Client) checkForm(kind flex.ADRKind, document any) error {
	form, _ := document.(map[string]any)["objectType"].(string)
	byBusiness := form == "BL_VEN_REQUEST" || form == "BL_RESOURCE_REQUEST"
	if kind != flex.ADRVEN && kind != flex.ADRResource || byBusiness == c.Business {
		return nil
	}

	if c.Business {
		return flex.Fail(
			flex.Malformed,
			"body.objectType: business logic writes a BL_VEN_REQUEST or a BL_RESOURCE_REQUEST, which says whose it is",
		)
	}

	return flex.Fail(
		flex.Forbidden,
		"a VEN writes a VEN_VEN_REQUEST or a VEN_RESOURCE_REQUEST: whose it is, and its targets, are for business logic to say",
	)
}

// Delete deletes an object, and returns it. A program with events, or a VEN with resources, is
// Malformed.
func (s *Service) Delete(
	ctx context.Context,
	c Client,
	kind flex.ADRKind,
	id flex.ADRObjectID,
) (Object, error) {
	if err := c.CheckWrite(kind); err != nil {
		return Object{}, err
	}

	var o Object
	err := s.DB.Write(ctx, c.Org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		stored, err := tx.ADRObject(
			ctx,
			c.scope(flex.ADRSearch{Kind: kind, ID: id}),
		)
		if err != nil {
			return err
		}

		o, err = objectOf(&stored)
		if err != nil {
			return err
		}

		if err := checkOwn(ctx, tx, &stored); err != nil {
			return err
		}
		if err := checkUnused(ctx, tx, &stored); err != nil {
			return err
		}

		// What is cancelled must end, also where too many subscribe: those without a notice
		// find it gone when they ask.
		bytesLeft := NoticesMax
		err = s.notifyWithin(ctx, tx, &o, opDelete, &bytesLeft)
		if err != nil && flex.KindOf(err) != flex.TooLarge {
			return err
		}

		return dropWithTargets(ctx, tx, &stored)
	})

	return o, err
}

// drop deletes an object, and withdraws the orders that it caused. Subscriptions to a program
// end with it, after their subscribers were notified.
func drop(ctx context.Context, tx *store.Tx, o *flex.ADRObject) error {
	if err := tx.DropADRObject(ctx, o.ID); err != nil {
		return err
	}
	if o.Kind == flex.ADRProgram {
		if _, err := tx.UnbindADRProgram(ctx, o.ID); err != nil {
			return err
		}
		if err := tx.EndADRSubscriptions(ctx, o.ID); err != nil {
			return err
		}
	}

	return reorder(ctx, tx, nil, o)
}

// checkUnused fails if other objects still refer to an object.
func checkUnused(ctx context.Context, tx *store.Tx, o *flex.ADRObject) error {
	q, plural := flex.ADRSearch{Kind: flex.ADREvent, Program: o.ID}, "events"
	switch o.Kind {
	case flex.ADRProgram:
	case flex.ADRVEN:
		q, plural = flex.ADRSearch{Kind: flex.ADRResource, VEN: o.ID}, "resources"
	default:
		return nil
	}

	n, err := tx.CountADRObjects(ctx, q)
	if err == nil && n > 0 {
		err = flex.Fail(
			flex.Malformed,
			"it has %d %s: delete these first",
			n,
			plural,
		)
	}

	return err
}

// Instant is how OpenADR writes an instant.
func Instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Document is an object as OpenADR writes it. The bearer tokens of webhooks are left out.
func (o *Object) Document() map[string]any {
	d := maps.Clone(o.Fields)
	d["id"], d["objectType"] = o.ID.String(), string(o.Kind)
	d["createdDateTime"], d["modificationDateTime"] = Instant(o.CreatedAt), Instant(o.ModifiedAt)
	if o.Client != "" {
		d["clientID"] = o.Client
	}

	return d
}

// Serves reports whether OpenADR is enabled for an organisation.
func (s *Service) Serves(
	ctx context.Context,
	org flex.OrgID,
) (on bool, err error) {
	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		o, err := tx.OrgRecord(ctx)
		on = o.Settings.OpenADR
		return err
	})

	return on, err
}
