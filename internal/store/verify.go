package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// storedLaw is a rule that all stored records meet, written as a query of the records that
// break it.
type storedLaw struct {
	text string
	// one text column: what is wrong, and where
	query string
	// what is wrong, for a rule that one query cannot check
	find func(context.Context, *All) ([]string, error)
}

// laws are all rules; each file adds those of its records with law.
var laws []storedLaw

func law(text, query string) bool {
	laws = append(laws, storedLaw{text: text, query: query})
	return true
}

// lawInGo adds a rule that is checked by a function instead of a query.
func lawInGo(
	text string,
	find func(context.Context, *All) ([]string, error),
) bool {
	laws = append(laws, storedLaw{text: text, find: find})
	return true
}

// findingsMax is how many findings are reported for one law at most.
const findingsMax = 20

// Verify returns a finding for every record that breaks a law, as "law: record". There should
// be none.
func (db *DB) Verify(ctx context.Context) ([]string, error) {
	var findings []string
	err := db.ReadAll(ctx, func(all *All) error {
		var err error
		findings, err = all.findings(ctx)
		return err
	})

	return findings, err
}

// findings is Verify within a transaction.
func (all *All) findings(ctx context.Context) ([]string, error) {
	filled, err := all.filledTables(ctx)
	if err != nil {
		return nil, fmt.Errorf("read which tables have rows: %w", err)
	}

	var findings []string
	for _, l := range laws {
		if l.onlyOfEmpty(filled) {
			continue
		}

		found, err := l.broken(ctx, all)
		if err != nil {
			return nil, fmt.Errorf("verify %q: %w", l.text, err)
		}

		for _, f := range found {
			findings = append(findings, l.text+": "+f)
		}
	}

	return findings, nil
}

// word matches what may be the name of a table in a query.
var word = regexp.MustCompile(`[a-z_]+`)

// onlyOfEmpty reports whether all tables that the law's query names are empty: then no record
// can break it, and the engine need not plan the query. filled has every table of the schema,
// and whether it has rows.
func (l storedLaw) onlyOfEmpty(filled map[string]bool) bool {
	names := 0
	for _, w := range word.FindAllString(l.query, -1) {
		some, table := filled[w]
		if some {
			return false
		}

		if table {
			names++
		}
	}

	return names > 0
}

// filledTables returns every table, and whether it has rows.
func (all *All) filledTables(ctx context.Context) (map[string]bool, error) {
	filled := map[string]bool{}
	each := func(s scanner) error {
		var name string
		var some bool
		err := s.Scan(&name, &some)
		filled[name] = filled[name] || some

		return err
	}

	if err := eachRow(ctx, all.conn, each, all.db.d.tables); err != nil {
		return nil, err
	}

	var asked []string
	for name, some := range filled {
		if some {
			asked = append(asked, fmt.Sprintf("SELECT '%[1]s', EXISTS (SELECT 1 FROM %[1]s)", name))
			filled[name] = false
		}
	}

	if len(asked) == 0 {
		return filled, nil
	}

	err := eachRow(ctx, all.conn, each, strings.Join(asked, " UNION ALL "))

	return filled, err
}

// broken returns the records that break the law.
func (l storedLaw) broken(ctx context.Context, all *All) ([]string, error) {
	if l.find != nil {
		found, err := l.find(ctx, all)
		return found[:min(len(found), findingsMax)], err
	}

	return rows(
		ctx,
		all.conn,
		scalar[string],
		fmt.Sprintf(
			"SELECT CAST(what AS TEXT) FROM (%s) AS broken LIMIT %d",
			l.query,
			findingsMax,
		),
	)
}

// Laws returns the laws that Verify checks, in words.
func Laws() []string {
	texts := make([]string, len(laws))
	for i, l := range laws {
		texts[i] = l.text
	}

	return texts
}
