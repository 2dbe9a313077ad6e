package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"flexd/internal/store"
)

// The environment variables that name what Templates has made. Without them each process of tests
// makes its own, which takes seconds.
const (
	imageEnv    = "FLEXD_TEST_SQLITE"   // a file
	templateEnv = "FLEXD_TEST_TEMPLATE" // a database on the server of Env
)

// sharedTemplate is the name of the database that Templates makes.
const sharedTemplate = "flexd_template"

// Templates makes what the tests' stores are copies of: a SQLite file in the folder and, if a
// server is given, a database on it, each with a schema that is up to date. It returns the
// environment by which the processes of tests find them.
func Templates(ctx context.Context, dir, server string) ([]string, error) {
	image := filepath.Join(dir, "template.db")
	if err := prepare(ctx, "sqlite:"+image); err != nil {
		return nil, err
	}

	env := []string{imageEnv + "=" + image}
	if server == "" {
		return env, nil
	}

	if err := makeTemplate(ctx, server, sharedTemplate); err != nil {
		return nil, err
	}

	return append(env, templateEnv+"="+sharedTemplate), nil
}

// prepare makes a store at the url. When it returns, all of a SQLite store is in its one file.
func prepare(ctx context.Context, url string) error {
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return err
	}

	return db.Close()
}

func makeTemplate(ctx context.Context, server, name string) error {
	db, err := sql.Open("pgx", server)
	if err != nil {
		return err
	}

	defer db.Close()

	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("make the template: %w", err)
	}

	return prepare(ctx, database(server, name))
}

// sqliteTemplate returns the bytes of a SQLite store without records.
func sqliteTemplate(ctx context.Context) ([]byte, error) {
	if shared := os.Getenv(imageEnv); shared != "" {
		return os.ReadFile(shared)
	}

	dir, err := os.MkdirTemp("", "flexd-template-")
	if err != nil {
		return nil, err
	}

	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "flexd.db")

	if err := prepare(ctx, "sqlite:"+path); err != nil {
		return nil, err
	}

	return os.ReadFile(path)
}

// postgresTemplate returns the name of a database without records on the server.
func postgresTemplate(ctx context.Context, server string) (string, error) {
	if shared := os.Getenv(templateEnv); shared != "" {
		return shared, nil
	}

	name := "template" + process

	return name, makeTemplate(ctx, server, name)
}

func database(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name

	return u.String()
}
