package store

import (
	"context"

	"flexd/internal/flex"
)

// CellKey is a property of a request by which the cell of its organisation is found, before
// the organisation is known.
type CellKey int

// The kinds of key, each with the Go type of its value.
const (
	KeyToken       CellKey = iota // []byte: the token's hash
	KeyCredential                 // string: the username
	KeyOrigin                     // string: the web origin of component tokens
	KeyBalanceLink                // []byte: the hash of a balance page's link
	KeyCloudLink                  // []byte: the hash of the state that a cloud's user comes back with
	KeyUpstream                   // []byte: the id of a program that another OpenADR server calls for
)

// cellKeys finds the organisation of a key of each kind.
var cellKeys = map[CellKey]string{
	KeyToken:       `SELECT org_id FROM token WHERE hash = $1`,
	KeyCredential:  `SELECT org_id FROM credential WHERE username = $1`,
	KeyOrigin:      `SELECT org_id FROM token WHERE origin = $1 AND origin <> '' LIMIT 1`,
	KeyBalanceLink: `SELECT org_id FROM balance_link WHERE hash = $1`,
	KeyCloudLink:   `SELECT org_id FROM cloud_link WHERE state = $1`,
	KeyUpstream:    `SELECT org_id FROM adr_upstream WHERE program_id = $1`,
}

// Usernames returns all usernames and client ids, revoked ones too, with their organisations.
func (all *All) Usernames(ctx context.Context) (map[string]flex.OrgID, error) {
	of := map[string]flex.OrgID{}
	err := eachRow(ctx, all.conn, func(s scanner) error {
		var name string
		var org flex.OrgID
		err := s.Scan(&name, &org)
		of[name] = org
		return err
	}, `SELECT username, org_id FROM credential`)

	return of, err
}

// OrgOf returns the organisation that a key is of, or a NotFound failure.
func (all *All) OrgOf(
	ctx context.Context,
	kind CellKey,
	key any,
) (flex.OrgID, error) {
	return one(
		ctx,
		all.conn,
		"no organisation has this key",
		scalar[flex.OrgID],
		cellKeys[kind],
		key,
	)
}
