package store

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// HaltKind is what kind of thing a halt stops.
type HaltKind string

// The kinds of halts. The zero value is that of everything.
const (
	HaltAll      HaltKind = ""
	HaltOrg      HaltKind = "organisation"
	HaltEndpoint HaltKind = "endpoint"
	HaltModel    HaltKind = "model"    // of assets, of every organisation
	HaltFirmware HaltKind = "firmware" // of assets, of every organisation
	// of metering points, of every organisation
	HaltRegion HaltKind = "gsp-group"
)

// HaltScope is what a halt stops. The zero value is everything.
type HaltScope struct {
	Kind HaltKind
	Org  flex.OrgID // of an organisation or an endpoint
	// of an endpoint; a model or a version of firmware, whatever its letters' case; a GSP
	// group, as "_C"
	Name string
}

// String returns the scope as ParseHaltScope reads it.
func (h HaltScope) String() string {
	switch h.Kind {
	case HaltAll:
		return haltAll
	case HaltOrg:
		return string(h.Kind) + "/" + h.Org.String()
	case HaltEndpoint:
		return string(h.Kind) + "/" + h.Org.String() + "/" + h.Name
	}

	return string(h.Kind) + "/" + h.Name
}

// Words names for people what a halt stops; org is the name of its organisation, if it has one
// and that is known.
func (h HaltScope) Words(org string) string {
	if org == "" {
		org = "organisation " + h.Org.String()
	}

	switch h.Kind {
	case HaltAll:
		return "everything"
	case HaltModel:
		return "model " + h.Name
	case HaltFirmware:
		return "firmware " + h.Name + " of every model"
	case HaltRegion:
		return "GSP group " + h.Name
	case HaltEndpoint:
		return org + ", endpoint " + h.Name
	}

	return org
}

const haltAll = "all"

// ParseHaltScope reads all, organisation/ID, endpoint/ID/NAME, model/NAME, firmware/VERSION or
// gsp-group/GROUP. Else it is Malformed.
func ParseHaltScope(text string) (HaltScope, error) {
	if text == haltAll {
		return HaltScope{}, nil
	}

	kind, rest, _ := strings.Cut(text, "/")

	var h HaltScope
	h.Kind = HaltKind(kind)
	org, name, _ := strings.Cut(rest, "/")

	var err error
	switch h.Kind {
	case HaltOrg:
		h.Org, err = parseOrg(rest)
	case HaltEndpoint:
		h.Name = name
		h.Org, err = parseOrg(org)
	case HaltModel, HaltFirmware:
		h.Name = strings.ToLower(rest) // as the list of models is searched
	case HaltRegion:
		h.Name = rest
	}

	unknown := h.Name == "" && h.Org.IsZero()
	incomplete := h.Kind == HaltEndpoint && h.Name == ""
	if err != nil || unknown || incomplete {
		return h, flex.Fail(
			flex.Malformed,
			"a halt of %q is none: give all, organisation/ID, endpoint/ID/NAME, model/NAME, firmware/VERSION or gsp-group/GROUP",
			text,
		)
	}

	return h, nil
}

func parseOrg(text string) (flex.OrgID, error) {
	id, err := flex.ParseID[struct{}](text)
	return flex.OrgID(id), err
}

// Halt says that what is in its scope is not sent to anybody, who has stopped it and why.
type Halt struct {
	Scope  HaltScope
	At     time.Time // by the true clock
	Who    string
	Reason string

	NeedsTwo bool      // whether two people end it
	AskedBy  string    // who asked for its end
	AskedAt  time.Time // zero if nobody has
}

// Halts are those that there are. They say what each of them stops, and nothing else does.
type Halts []Halt

// all reports whether nothing is sent at all.
func (hs Halts) all() bool {
	return slices.ContainsFunc(hs, func(h Halt) bool {
		return h.Scope.Kind == HaltAll
	})
}

// stopEndpoint reports whether nothing is sent to an endpoint.
func (hs Halts) stopEndpoint(org flex.OrgID, name flex.EndpointName) bool {
	return hs.all() || slices.ContainsFunc(hs, func(h Halt) bool {
		ofOrg := h.Scope.Kind == HaltOrg
		ofEndpoint := h.Scope.Kind == HaltEndpoint &&
			h.Scope.Name == string(name)
		return h.Scope.Org == org && (ofOrg || ofEndpoint)
	})
}

// byAsset reports whether it depends on the asset what is sent.
func (hs Halts) byAsset() bool {
	return slices.ContainsFunc(hs, func(h Halt) bool {
		return h.Scope.byAsset()
	})
}

// byAsset reports whether the scope is of assets by what they are.
func (h HaltScope) byAsset() bool {
	return h.Kind == HaltModel || h.Kind == HaltFirmware ||
		h.Kind == HaltRegion
}

// haltedAsset is what a halt knows an asset by; the model and the firmware are in lower case,
// without blanks around them.
type haltedAsset struct{ model, firmware, region string }

// stopAsset reports whether nothing is sent to an asset.
func (hs Halts) stopAsset(a haltedAsset) bool {
	of := map[HaltKind]string{
		HaltModel:    a.model,
		HaltFirmware: a.firmware,
		HaltRegion:   a.region,
	}

	return slices.ContainsFunc(hs, func(h Halt) bool {
		name, ok := of[h.Scope.Kind]
		return ok && name == strings.TrimSpace(h.Scope.Name)
	})
}

// HaltsMax is how many halts there may be at a time: each push is checked against all of them.
const HaltsMax = 100

// Halt stops the pushes of its scope on every process: no attempt begins after this transaction. It
// is a Conflict when they are halted already, or when HaltsMax are.
func (all *All) Halt(ctx context.Context, h Halt) error {
	there, err := all.Halts(ctx)
	if err != nil {
		return err
	}

	if len(there) >= HaltsMax {
		return flex.Fail(
			flex.Conflict,
			"there are %d halts, as many as there can be: halt everything, or end one",
			HaltsMax,
		)
	}

	two := 0
	if h.NeedsTwo {
		two = 1
	}

	id := 2 + rand.Int64N(math.MaxInt64-2) // unlike any other's
	if h.Scope.Kind == HaltAll {
		id = 1
	}

	n, err := all.exec(
		ctx,
		`INSERT INTO halt (scope, id, at, who, reason, needs_two) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		h.Scope.String(),
		id,
		micros(all.now),
		h.Who,
		h.Reason,
		two,
	)

	if err == nil && n == 0 {
		return flex.Fail(
			flex.Conflict,
			"%s are halted already",
			h.Scope.pushes(),
		)
	}

	all.Wake(WakeWatch)

	return err
}

// pushes names what is sent, or not, in the scope.
func (h HaltScope) pushes() string {
	if h.Kind == HaltAll {
		return "pushes"
	}
	return "the pushes of " + h.String()
}

// AskResume notes who asks for the halt's end, in place of whoever did before.
func (all *All) AskResume(
	ctx context.Context,
	scope HaltScope,
	who string,
) error {
	_, err := all.exec(
		ctx,
		`UPDATE halt SET asked_by = $2, asked_at = $3 WHERE scope = $1`,
		scope.String(),
		who,
		micros(all.now),
	)

	return err
}

// Resume has what was held sent, as far as it still lives and no other halt stops it. It is a
// Conflict when there is no such halt.
func (all *All) Resume(ctx context.Context, scope HaltScope) error {
	n, err := all.exec(ctx, `DELETE FROM halt WHERE scope = $1`, scope.String())
	if err == nil && n == 0 {
		return flex.Fail(flex.Conflict, "%s are not halted", scope.pushes())
	}
	if err != nil {
		return err
	}

	if scope.byAsset() {
		_, err = all.exec(
			ctx,
			`UPDATE outbox SET holder = 0, turn_at = $1 WHERE holder = `+
				strconv.Itoa(haltHolder)+` AND turn_at IS NOT NULL`,
			micros(all.now),
		)
	}

	all.Wake(WakePush)
	all.Wake(WakeWatch)

	return err
}

// Halts returns who has halted what, the first first.
func (all *All) Halts(ctx context.Context) (Halts, error) {
	return all.conn.halts(ctx)
}

func (c conn) halts(ctx context.Context) (Halts, error) {
	return rows(ctx, c, func(s scanner) (Halt, error) {
		var two int
		var scope string

		var h Halt
		err := s.Scan(
			&scope,
			instant{&h.At},
			&h.Who,
			&h.Reason,
			&two,
			&h.AskedBy,
			instant{&h.AskedAt},
		)
		if err != nil {
			return h, err
		}

		h.NeedsTwo = two == 1
		h.Scope, err = ParseHaltScope(scope)
		return h, err
	}, `SELECT scope, at, who, reason, needs_two, asked_by, asked_at FROM halt ORDER BY at, scope`)
}

// Halted returns who has halted all pushes, or nil while they go out.
func (all *All) Halted(ctx context.Context) (*Halt, error) {
	found, err := all.Halts(ctx)
	i := slices.IndexFunc(found, func(h Halt) bool {
		return h.Scope.Kind == HaltAll
	})
	if err != nil || i < 0 {
		return nil, err
	}

	return &found[i], nil
}

// Halted reports whether halts stop all that would be sent to an endpoint of the organisation.
func (tx *Tx) Halted(ctx context.Context, name flex.EndpointName) (bool, error) {
	halts, err := tx.halts(ctx)

	return halts.stopEndpoint(tx.org, name), err
}

// HaltReach is how much a halt stops, or would stop.
type HaltReach struct {
	Sites   int
	Assets  int
	Waiting int // pushes
}

// ReachOfHalt counts what is in a scope.
func (all *All) ReachOfHalt(
	ctx context.Context,
	scope HaltScope,
) (HaltReach, error) {
	const placed = ` FROM asset a JOIN site t ON t.org_id = a.org_id AND t.id = a.site_id LEFT JOIN meter m ON m.mpan = t.mpan`
	where, args := scope.where()

	var r HaltReach
	err := all.row(
		ctx,
		`SELECT count(*), count(DISTINCT a.site_id)`+placed+` WHERE `+where,
		args...,
	).Scan(&r.Assets, &r.Sites)
	if err != nil {
		return r, err
	}

	waiting := ``
	switch scope.Kind {
	case HaltOrg:
		waiting = ` AND o.org_id = $1`
	case HaltEndpoint:
		waiting, args = ` AND o.org_id = $1 AND o.endpoint = $2`, append(
			args,
			scope.Name,
		)
	case HaltModel, HaltFirmware, HaltRegion: // what waits is of an asset, or is a dispatch of several
		assets := `(SELECT a.id` + placed + ` WHERE ` + where + `)`
		waiting = ` AND (o.asset_id IN ` + assets + `
			OR o.asset_id IS NULL AND o.event_id IN (SELECT d.event_id FROM dispatch_asset d WHERE d.asset_id IN ` + assets + `))`
	}

	err = all.row(
		ctx,
		`SELECT count(*) FROM outbox o WHERE o.turn_at IS NOT NULL AND o.expires_at > 0`+waiting,
		args...,
	).Scan(&r.Waiting)

	return r, err
}

// where is which assets are in a scope: those of an endpoint are its organisation's.
func (h HaltScope) where() (string, []any) {
	switch h.Kind {
	case HaltAll:
		return `TRUE`, nil
	case HaltModel:
		return modelKeySQL + ` = $1`, []any{modelKey(h.Name)}
	case HaltFirmware:
		return firmwareKeySQL + ` = $1`, []any{modelKey(h.Name)}
	case HaltRegion:
		return `m.gsp_group = $1`, []any{h.Name}
	}

	return `a.org_id = $1`, []any{h.Org.Bytes()}
}
