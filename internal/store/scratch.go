package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"flexd/internal/flex"
)

// Scratch makes databases on a PostgreSQL server that are each used once and dropped, as
// simulations need them. They are copies of one that is prepared once: to make the tables
// takes longer than to play a small history on them.
type Scratch struct {
	server *url.URL
	name   string // of the one that is copied
	made   atomic.Int64
}

// NewScratch prepares the database that is copied, on the server of the URL, whose role must
// be one that may create databases. What the URL's own database holds is not touched. A URL
// that is not of PostgreSQL is Invalid.
func NewScratch(
	ctx context.Context,
	server string,
	prepare func(ctx context.Context, url string) error,
) (*Scratch, error) {
	u, err := url.Parse(server)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return nil, flex.Fail(
			flex.Invalid,
			"the server is a URL like postgres://user@host:5432/postgres",
		)
	}

	s := &Scratch{
		server: u,
		name:   fmt.Sprintf("flexd_scratch_%016x", rand.Uint64()),
	}

	if err := s.exec(ctx, "CREATE DATABASE "+s.name); err != nil {
		return nil, err
	}

	if err := prepare(ctx, s.url(s.name)); err != nil {
		_ = s.Close(ctx) // the error that counts is the first
		return nil, err
	}

	return s, nil
}

// Make makes a database and returns its URL. Several may be made at once.
func (s *Scratch) Make(ctx context.Context) (string, error) {
	name := fmt.Sprintf("%s_%d", s.name, s.made.Add(1))

	return s.url(name), s.exec(
		ctx,
		"CREATE DATABASE "+name+" TEMPLATE "+s.name,
	)
}

// Drop drops a database that Make made, also if the context has ended.
func (s *Scratch) Drop(ctx context.Context, made string) error {
	u, err := url.Parse(made)
	if err != nil {
		return err
	}

	return s.drop(ctx, strings.TrimPrefix(u.Path, "/"))
}

// Close drops the database that is copied.
func (s *Scratch) Close(ctx context.Context) error {
	return s.drop(ctx, s.name)
}

func (s *Scratch) drop(ctx context.Context, name string) error {
	return s.exec(
		context.WithoutCancel(ctx),
		"DROP DATABASE IF EXISTS "+name+" WITH (FORCE)",
	)
}

func (s *Scratch) url(name string) string {
	u := *s.server
	u.Path = "/" + name

	return u.String()
}

func (s *Scratch) exec(ctx context.Context, statement string) error {
	c, err := pgx.Connect(ctx, s.server.String())
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}

	defer c.Close(context.WithoutCancel(ctx))
	if _, err := c.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}

	return nil
}
