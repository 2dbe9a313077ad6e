package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// storedLaw is a rule that all stored records meet, written as a query that finds what breaks it.
type storedLaw struct {
	text string
	// one text column: what is wrong, and where
	query string
	// what is wrong, where that takes more than a query
	find func(context.Context, *All) ([]string, error)
}

// laws is the list; each noun's file adds its own with law in an init function.
var laws []storedLaw

func law(text, query string) bool {
	laws = append(laws, storedLaw{text: text, query: query})
	return true
}

// lawInGo adds a law that no query can hold the records against.
func lawInGo(
	text string,
	find func(context.Context, *All) ([]string, error),
) bool {
	laws = append(laws, storedLaw{text: text, find: find})
	return true
}

// findingsMax bounds the findings reported for one law.
const findingsMax = 20

// Verify lists every broken law, as "law: what breaks it". None is the right answer.
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

// word finds what may be the name of a table in a query.
var word = regexp.MustCompile(`[a-z_]+`)

// onlyOfEmpty reports whether all tables that the law's query names are empty: then no record can break it, and the
// engine need not plan the query. filled has every table of the schema, and whether it has rows.
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

// broken returns what breaks the law.
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

// Laws returns the laws that Verify holds the records against, in words.
func Laws() []string {
	texts := make([]string, len(laws))
	for i, l := range laws {
		texts[i] = l.text
	}

	return texts
}
