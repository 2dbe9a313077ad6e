package store

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migration/*.sql
var migrations embed.FS

// migrate brings the schema up to date. Several processes may start at once: on PostgreSQL one
// holds a lock row, on SQLite the loser of the race tries again. SQLite is then given the
// statistics of the new schema.
func (db *DB) migrate(ctx context.Context) error {
	p, err := db.migrator()
	if err != nil {
		return err
	}

	for try := 0; ; try++ {
		_, err = p.Up(ctx)
		if err == nil {
			break
		}
		if try == 2 || db.d.name != "sqlite" {
			return fmt.Errorf("migrate: %w", err)
		}
	}

	if db.d.statistics {
		return db.writeStatistics(ctx)
	}

	return nil
}

// migrator returns what brings the schema from one version to another.
func (db *DB) migrator() (*goose.Provider, error) {
	dir, err := fs.Sub(migrations, "migration")
	if err != nil {
		return nil, err
	}

	kind := goose.DialectSQLite3
	opts := []goose.ProviderOption{
		goose.WithVerbose(false),
		goose.WithGoMigrations(assetKeys()),
	}
	if db.d.name == "postgres" {
		l, err := lock.NewPostgresTableLocker()
		if err != nil {
			return nil, err
		}
		kind, opts = goose.DialectPostgres, append(opts, goose.WithLocker(l))
	}

	return goose.NewProvider(kind, db.sql, typedFS{dir, db.d}, opts...)
}

// typedFS serves the migrations with the engine's own type words.
type typedFS struct {
	fs.FS
	d dialect
}

// Open reads a file and puts the engine's words in.
func (t typedFS) Open(name string) (fs.File, error) {
	f, err := t.FS.Open(name)
	if err != nil {
		return nil, err
	}

	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return f, err
	}

	defer f.Close()

	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}

	text := []byte(oneStatement(t.d.types.Replace(only(string(b), t.d.name))))

	return &typedFile{info, *bytes.NewReader(text)}, nil
}

// only leaves out the lines that are for the other engine: those after "-- +only NAME", up
// to the next such line. "-- +only end" stands before lines for both.
func only(text, engine string) string {
	var b strings.Builder
	kept := true

	for line := range strings.Lines(text) {
		name, marked := strings.CutPrefix(strings.TrimSpace(line), "-- +only ")
		if marked {
			kept = name == engine || name == "end"
			continue
		}

		if kept {
			b.WriteString(line)
		}
	}

	return b.String()
}

// upMark stands above a migration's statements.
const upMark = "-- +goose Up\n"

// oneStatement has the statements of a migration sent as one: the migrator takes a buffer of 4 MB
// for each line in which it looks for a statement's end, and PostgreSQL is asked once.
func oneStatement(text string) string {
	head, body, found := strings.Cut(text, upMark)
	if !found || strings.Contains(head, "NO TRANSACTION") {
		return text
	}

	var b strings.Builder
	empty := true

	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "-- +goose Statement") {
			continue
		}

		b.WriteString(line)
		if start := strings.TrimSpace(line); start != "" && !strings.HasPrefix(start, "--") {
			empty = false
		}
	}

	if empty { // all are of the other engine
		return text
	}

	return head + upMark + "-- +goose StatementBegin\n" +
		strings.TrimRight(b.String(), "\n") + "\n-- +goose StatementEnd\n"
}

// ReadDir lists the migrations.
func (t typedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(t.FS, name)
}

// Glob finds migrations by pattern.
func (t typedFS) Glob(pattern string) ([]string, error) {
	return fs.Glob(t.FS, pattern)
}

type typedFile struct {
	info fs.FileInfo
	bytes.Reader
}

func (f *typedFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *typedFile) Close() error               { return nil }
