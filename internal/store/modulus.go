package store

import (
	"context"
	"time"
)

// The kinds of modulus tables.
const (
	ModulusWeights     = "weights"
	ModulusSubstitutes = "substitutes"
)

// ModulusTable is a published table by which bank accounts are checked.
type ModulusTable struct {
	Kind       string
	Content    string
	ImportedAt time.Time
}

// PutModulusTable stores a table in the place of the one of its kind.
func (all *All) PutModulusTable(
	ctx context.Context,
	kind, content string,
) error {
	_, err := all.exec(
		ctx,
		`INSERT INTO modulus_table (kind, content, imported_at) VALUES ($1, $2, $3)
		ON CONFLICT (kind) DO UPDATE SET content = excluded.content, imported_at = excluded.imported_at`,
		kind,
		content,
		micros(all.now),
	)

	return err
}

// ModulusTables returns the tables that were imported, by their kind.
func (c conn) ModulusTables(ctx context.Context) (map[string]ModulusTable, error) {
	scan := func(s scanner) (ModulusTable, error) {
		var m ModulusTable
		err := s.Scan(&m.Kind, &m.Content, instant{&m.ImportedAt})
		return m, err
	}

	found, err := rows(
		ctx,
		c,
		scan,
		`SELECT kind, content, imported_at FROM modulus_table`,
	)

	tables := map[string]ModulusTable{}

	for _, m := range found {
		tables[m.Kind] = m
	}

	return tables, err
}
