package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// The audit log is a chain. Each beginning and each end of an act is a link, a line of JSON
// that is kept as it was hashed; its hash is the SHA-256, in hexadecimal, of the hash before, a
// line break and the line. The first hash before is empty. So whoever holds a hash of some day
// can tell whether anything up to it was changed, left out or put in since.

var (
	_ = lawInGo("the audit log is the chain that was written", brokenChain)

	_ = law(
		"links of the audit log are counted without a hole",
		`SELECT sequence AS what FROM audit_head
		WHERE sequence <> (SELECT COUNT(*) FROM audit_link) OR sequence <> (SELECT COALESCE(MAX(sequence), 0) FROM audit_link)`,
	)

	_ = law(
		"an act whose beginning is a link of the audit log ends by a link",
		`SELECT a.id AS what FROM audit a
		JOIN audit_link b ON b.audit_id = a.id AND b.step = 'begun'
		WHERE a.outcome <> '' AND NOT EXISTS (SELECT 1 FROM audit_link e WHERE e.audit_id = a.id AND e.step = 'ended')`,
	)
)

// The steps of an act that are links.
const (
	stepBegun = "begun"
	stepEnded = "ended"
)

// Link is a link of the audit log's chain.
type Link struct {
	Sequence int64
	Text     string // JSON, as it was hashed
	Hash     string // hexadecimal
}

// Head is the newest link of the chain, or all zero.
type Head struct {
	Sequence int64
	Hash     string
}

const linkInstant = "2006-01-02T15:04:05.000000Z"

// begunText is the link of an act's beginning, but for its number.
func begunText(a flex.AuditEntry) linkText {
	t := linkText{
		Step:    stepBegun,
		Act:     a.ID.String(),
		At:      a.At.UTC().Format(linkInstant),
		Who:     a.Who,
		Source:  a.Source,
		What:    a.Act,
		Subject: a.Subject,
		Detail:  a.Detail,
	}

	if !a.Org.IsZero() {
		t.Organisation = a.Org.String()
	}

	return t
}

// endedText is the link of an act's end, but for its number.
func endedText(id flex.AuditID, at time.Time, outcome, detail string) linkText {
	return linkText{
		Step:    stepEnded,
		Act:     id.String(),
		At:      at.UTC().Format(linkInstant),
		Detail:  detail,
		Outcome: outcome,
	}
}

// chainHash is the hash of a link after the one with the hash before.
func chainHash(before, text string) string {
	sum := sha256.Sum256([]byte(before + "\n" + text))
	return hex.EncodeToString(sum[:])
}

// link appends to the chain. The update of the head has other transactions wait, so that no
// two links follow the same one.
func (all *All) link(ctx context.Context, id flex.AuditID, t linkText) error {
	if _, err := all.exec(
		ctx,
		`UPDATE audit_head SET sequence = sequence + 1 WHERE id = 1`,
	); err != nil {
		return err
	}

	head, err := all.AuditHead(ctx)
	if err != nil {
		return err
	}

	t.Sequence = head.Sequence
	text, err := encode(t)
	if err != nil {
		return err
	}

	hash := chainHash(head.Hash, text)
	_, err = all.exec(
		ctx,
		`INSERT INTO audit_link (sequence, audit_id, step, text, hash) VALUES ($1, $2, $3, $4, $5)`,
		t.Sequence,
		id.Bytes(),
		t.Step,
		text,
		hash,
	)

	if err != nil {
		return err
	}

	_, err = all.exec(ctx, `UPDATE audit_head SET hash = $1 WHERE id = 1`, hash)

	return err
}

// AuditHead returns the newest link's number and hash.
func (all *All) AuditHead(ctx context.Context) (Head, error) {
	var h Head
	err := all.row(
		ctx,
		`SELECT sequence, hash FROM audit_head WHERE id = 1`,
	).Scan(&h.Sequence, &h.Hash)

	return h, err
}

// AuditLinks returns links in order, those after the number, at most limit.
func (all *All) AuditLinks(
	ctx context.Context,
	after int64,
	limit int,
) ([]Link, error) {
	scan := func(s scanner) (Link, error) {
		var l Link
		err := s.Scan(&l.Sequence, &l.Text, &l.Hash)
		return l, err
	}

	return rows(
		ctx,
		all.conn,
		scan,
		`SELECT sequence, text, hash FROM audit_link WHERE sequence > $1 ORDER BY sequence LIMIT $2`,
		after,
		limit,
	)
}

// UnlinkedActs counts acts that are in no link: those of before the chain, and those that an
// older program wrote since.
func (all *All) UnlinkedActs(ctx context.Context) (int64, error) {
	var n int64
	err := all.row(ctx, `SELECT COUNT(*) FROM audit a
		WHERE NOT EXISTS (SELECT 1 FROM audit_link l WHERE l.audit_id = a.id AND l.step = 'begun')`).Scan(&n)
	return n, err
}

// chainRow is a link beside the act that it is of.
type chainRow struct {
	link  Link
	step  string
	act   flex.AuditEntry
	there bool // whether the act is
}

// brokenChain recomputes every hash, and holds each act against what its links say.
func brokenChain(ctx context.Context, all *All) ([]string, error) {
	before := ""

	var broken []string
	scan := func(s scanner) error {
		r, err := scanChainRow(s)

		if err != nil {
			return err
		}

		if chainHash(before, r.link.Text) != r.link.Hash {
			broken = append(
				broken,
				fmt.Sprintf(
					"link %d does not follow from the one before",
					r.link.Sequence,
				),
			)
		}

		before = r.link.Hash

		fault, err := r.fault()
		if fault != "" {
			broken = append(broken, fault)
		}

		return err
	}

	err := eachRow(
		ctx,
		all.conn,
		scan,
		`SELECT l.sequence, l.step, l.text, l.hash, a.id IS NOT NULL, l.audit_id, a.at,
		COALESCE(a.who, ''), COALESCE(a.source, ''), COALESCE(a.act, ''), a.org_id, COALESCE(a.subject, ''), COALESCE(a.detail, ''), COALESCE(a.outcome, ''), a.ended_at
		FROM audit_link l LEFT JOIN audit a ON a.id = l.audit_id ORDER BY l.sequence`,
	)
	if err != nil {
		return nil, err
	}

	head, err := all.AuditHead(ctx)
	if err == nil && head.Hash != before {
		broken = append(
			broken,
			fmt.Sprintf(
				"the newest link is not the one that was written last, %d",
				head.Sequence,
			),
		)
	}

	return broken, err
}

func scanChainRow(s scanner) (chainRow, error) {
	var r chainRow
	a := &r.act
	err := s.Scan(
		&r.link.Sequence,
		&r.step,
		&r.link.Text,
		&r.link.Hash,
		&r.there,
		&a.ID,
		instant{&a.At},
		&a.Who,
		&a.Source,
		&a.Act,
		&a.Org,
		&a.Subject,
		&a.Detail,
		&a.Outcome,
		instant{&a.EndedAt},
	)

	return r, err
}

// fault says how the act differs from what its link says, "" if it does not.
func (r chainRow) fault() (string, error) {
	var said linkText
	if err := decode("link", r.link.Text, &said); err != nil {
		return fmt.Sprintf(
			"link %d is no JSON",
			r.link.Sequence,
		), nil //nolint:nilerr // it is a finding
	}

	if !r.there {
		return fmt.Sprintf(
			"link %d is of an act that is gone, %s",
			r.link.Sequence,
			said.Act,
		), nil
	}

	now := endedText(r.act.ID, r.act.EndedAt, r.act.Outcome, r.act.Detail)
	if r.step == stepBegun {
		now = begunText(r.act)
		if r.act.Outcome != "" { // the end may have replaced it, and says so itself
			now.Detail = said.Detail
		}
	}

	now.Sequence = r.link.Sequence

	text, err := encode(now)
	if err != nil {
		return "", err
	}

	if text != r.link.Text {
		return fmt.Sprintf(
			"act %s is no longer what link %d says",
			said.Act,
			r.link.Sequence,
		), nil
	}

	return "", nil
}

// VerifyAudit returns where the audit log's chain does not hold, as Verify does among the rest.
func (db *DB) VerifyAudit(ctx context.Context) ([]string, error) {
	var broken []string
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		broken, err = brokenChain(ctx, all)
		return err
	})

	return broken, err
}

// Sign signs a message with the newest key of the key file, which the database does not hold.
func (db *DB) Sign(purpose string, message []byte) (keyring.Signature, error) {
	if db.keys == nil {
		return keyring.Signature{}, errNoKey
	}
	return db.keys.Sign(purpose, message), nil
}
