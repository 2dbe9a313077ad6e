package flex

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// ID is the identifier of an Of: a UUID, made as version 7 so that later ids
// sort after earlier ones.
type ID[Of any] [16]byte

// The ids of flexd, one type each, so that one cannot stand for another.
type (
	OrgID         = ID[orgKind]
	OperatorID    = ID[operatorKind]
	SiteID        = ID[siteKind]
	AssetID       = ID[assetKind]
	SessionID     = ID[sessionKind]
	EventID       = ID[eventKind] // a push or a dispatch, as the callback names it
	EndpointID    = ID[endpointKind]
	PublicationID = ID[publicationKind]
	FlexEventID   = ID[flexEventKind]
	TransactionID = ID[transactionKind]
	RunID         = ID[runKind]
	HeldID        = ID[heldKind]
	SavedViewID   = ID[savedViewKind]
	InstructionID = ID[instructionKind] // of the grid
	OfferID       = ID[offerKind]       // to the grid
	ProductID     = ID[productKind]     // of the grid
	AlertID       = ID[alertKind]
	AuditID       = ID[auditKind] // of an entry of the audit log
	ADRObjectID   = ID[adrObjectKind]
	ADROrderID    = ID[adrOrderKind] // what an interval of an OpenADR event asks of the fleet
	UserID        = ID[userKind]     // an end user, as a component token names one
)

type (
	orgKind         struct{}
	operatorKind    struct{}
	siteKind        struct{}
	assetKind       struct{}
	sessionKind     struct{}
	eventKind       struct{}
	endpointKind    struct{}
	publicationKind struct{}
	instructionKind struct{}
	offerKind       struct{}
	productKind     struct{}
	alertKind       struct{}
	auditKind       struct{}
	adrObjectKind   struct{}
	adrOrderKind    struct{}
	flexEventKind   struct{}
	transactionKind struct{}
	runKind         struct{}
	heldKind        struct{}
	userKind        struct{}
	savedViewKind   struct{}
)

// MakeID returns the version 7 id of the instant at and ten random bytes.
func MakeID[Of any](at time.Time, random [10]byte) ID[Of] {
	ms := uint64(at.UnixMilli())

	var id ID[Of]
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}

	copy(id[6:], random[:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80

	return id
}

// ParseID reads the 36-character form of an id, in either case.
func ParseID[Of any](s string) (ID[Of], error) {
	if len(s) != 36 {
		return ID[Of]{}, fmt.Errorf(
			"%q is not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
			s,
		)
	}

	u, err := uuid.Parse(s)
	if err != nil {
		return ID[Of]{}, fmt.Errorf("%q is not a UUID: %w", s, err)
	}

	return ID[Of](u), nil
}

// IsZero reports whether the id was never set.
func (id ID[Of]) IsZero() bool { return id == ID[Of]{} }

// Bytes returns the id's sixteen bytes, the form in which the store keeps it.
func (id ID[Of]) Bytes() []byte { return id[:] }

// String returns the 36-character form in lower case.
func (id ID[Of]) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:], id[10:])

	return string(b[:])
}

// MarshalText writes the 36-character form.
func (id ID[Of]) MarshalText() ([]byte, error) {
	return []byte(id.String()), nil
}

// UnmarshalText reads the 36-character form.
func (id *ID[Of]) UnmarshalText(b []byte) error {
	var err error
	*id, err = ParseID[Of](string(b))
	return err
}

// Scan reads an id as either engine hands it over: sixteen bytes, or the text form.
// A missing value is the zero id.
func (id *ID[Of]) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*id = ID[Of]{}
		return nil

	case []byte:
		if len(v) == 16 {
			copy(id[:], v)
			return nil
		}

		return id.UnmarshalText(v)

	case string:
		return id.UnmarshalText([]byte(v))
	}

	return fmt.Errorf("cannot read an id from %T", src)
}
