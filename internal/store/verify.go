package store

import (
	"context"
	"fmt"
)

// invariant is a law of the stored records, written as a query that finds what breaks it.
type invariant struct {
	law string
	// one text column: what is wrong, and where
	query string
	// what is wrong, where that takes more than a query
	find func(context.Context, *All) ([]string, error)
}

// invariants is the list; each noun's file adds its own with law in an init function.
var invariants []invariant

func law(text, query string) bool {
	invariants = append(invariants, invariant{law: text, query: query})
	return true
}

// lawInGo adds a law that no query can hold the records against.
func lawInGo(
	text string,
	find func(context.Context, *All) ([]string, error),
) bool {
	invariants = append(invariants, invariant{law: text, find: find})
	return true
}

// findingsMax bounds the findings reported for one law.
const findingsMax = 20

// Verify lists every broken invariant, as "law: what breaks it". None is the right answer.
func (db *DB) Verify(ctx context.Context) ([]string, error) {
	var findings []string
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		findings, err = all.findings(ctx)
		return err
	})

	return findings, err
}

// findings are what breaks the laws, as Verify lists it.
func (all *All) findings(ctx context.Context) ([]string, error) {
	var findings []string
	for _, i := range invariants {
		found, err := i.broken(ctx, all)
		if err != nil {
			return nil, fmt.Errorf("verify %q: %w", i.law, err)
		}

		for _, f := range found {
			findings = append(findings, i.law+": "+f)
		}
	}

	return findings, nil
}

// broken returns what breaks the law.
func (i invariant) broken(ctx context.Context, all *All) ([]string, error) {
	if i.find != nil {
		found, err := i.find(ctx, all)
		return found[:min(len(found), findingsMax)], err
	}

	return rows(
		ctx,
		all.conn,
		scalar[string],
		fmt.Sprintf(
			"SELECT CAST(what AS TEXT) FROM (%s) AS broken LIMIT %d",
			i.query,
			findingsMax,
		),
	)
}

// Laws returns the laws that Verify holds the records against, in words.
func Laws() []string {
	laws := make([]string, len(invariants))
	for i, in := range invariants {
		laws[i] = in.law
	}

	return laws
}
