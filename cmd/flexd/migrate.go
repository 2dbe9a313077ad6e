package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	records "flexd/internal/store"
)

// migrate is `flexd migrate`.
type migrate struct {
	store
	DryRun bool `help:"Say what would be done, and change nothing." name:"dry-run"`
	JSON   bool `help:"Print as JSON." name:"json"`
}

// Help is printed below the command's own line.
func (m *migrate) Help() string {
	return "Make a copy with flexd backup first. Example:\n\n  flexd migrate --database sqlite:flexd.db --dry-run"
}

// migration is the report of a migration.
type migration struct {
	From    int64    `json:"from_version"`
	To      int64    `json:"to_version"`
	Applied []string `json:"migrations"`
	DryRun  bool     `json:"dry_run"`
}

// Run brings the schema up to date, or prints the migrations that are missing.
func (m *migrate) Run(ctx context.Context, c console) error {
	open := m.creating
	if m.DryRun { // which makes no database either
		open = m.settings
	}

	settings, err := open()
	if err != nil {
		return err
	}

	status, err := records.ReadSchemaStatus(ctx, settings.Database)
	if err != nil {
		return err
	}

	if m.DryRun { // as Open does before it migrates
		err := records.CheckEnvironmentAt(ctx, settings.Database, settings.Environment)
		if err != nil {
			return err
		}
	}

	report := migration{
		From:    status.Version,
		To:      status.Needed,
		Applied: []string{},
		DryRun:  m.DryRun,
	}

	for _, file := range status.Pending {
		report.Applied = append(report.Applied, path.Base(file))
	}

	start := time.Now()

	if !m.DryRun {
		settings.Schema = records.SchemaMigrate
		flexd, err := openChecked(ctx, settings)
		if err != nil {
			return err
		}
		if err := flexd.Close(); err != nil {
			return fmt.Errorf("close the database: %w", err)
		}
	}

	if status.Newer() {
		return errors.New("the schema is newer than this flexd knows")
	}
	if m.JSON {
		return c.json(report)
	}

	return m.print(c, report, time.Since(start))
}

func (m *migrate) print(c console, r migration, took time.Duration) error {
	if len(r.Applied) == 0 {
		_, err := fmt.Fprintf(
			c.out,
			"nothing to do: the schema has version %d\n",
			r.From,
		)

		return err
	}

	for _, name := range r.Applied {
		fmt.Fprintln(c.out, name)
	}

	if m.DryRun {
		_, err := fmt.Fprintf(
			c.out,
			"would bring the schema from version %d to %d\n",
			r.From,
			r.To,
		)

		return err
	}

	_, err := fmt.Fprintf(
		c.out,
		"brought the schema from version %d to %d in %v\n",
		r.From,
		r.To,
		took.Round(time.Millisecond),
	)

	return err
}
