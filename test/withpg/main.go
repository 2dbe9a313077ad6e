// Command withpg runs a command beside a PostgreSQL server of its own: it makes a cluster
// in a temporary folder, starts it on a free port of the loopback, runs the command with
// FLEXD_TEST_POSTGRES set to the server's URL, stops the server and removes the folder. It
// makes the stores that tests copy, too, once for all of them (internal/store/storetest), and
// exits as the command did.
//
//	go run ./test/withpg go test ./...
//
// With FLEXD_TEST_POOLER=transaction (or session) it starts a PgBouncer of this mode before the server, through which the
// tests open their stores.
//
// Where PostgreSQL is not installed it says so and runs the command without it; with
// FLEXD_TEST_STRICT set it fails instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"flexd/internal/store/storetest"
	"flexd/test/postgres"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(command []string) (int, error) {
	if len(command) == 0 {
		return 0, errors.New("usage: withpg COMMAND [ARG...]")
	}

	ctx, stop := signal.NotifyContext(
		context.Background(),
		os.Interrupt,
		syscall.SIGTERM,
	)

	defer stop()

	if postgres.Binaries() == "" {
		if os.Getenv("FLEXD_TEST_STRICT") != "" {
			return 0, errors.New(
				"PostgreSQL is not installed, and FLEXD_TEST_STRICT forbids to skip its half of the suite",
			)
		}
		fmt.Fprintln(
			os.Stderr,
			"withpg: PostgreSQL is not installed (apt-get install postgresql): the suite's PostgreSQL half will be SKIPPED",
		)

		return withTemplates(ctx, command, "")
	}

	// No sync: these are tests of SQL and of order, and the crash tests start their own server. No compiling of
	// statements either: what PostgreSQL expects of tables without statistics has it compile what reads no row. And no
	// collecting of statistics beside the tests: it would change their plans, at whatever instant. A statement is planned
	// once for each connection, and not for each of its first five runs: a test's connections run most of theirs less often.
	s, err := postgres.Start(
		ctx,
		"fsync=off",
		"full_page_writes=off",
		"shared_buffers=256MB",
		"jit=off",
		"autovacuum=off",
		"plan_cache_mode=force_generic_plan",
	)
	if err != nil {
		return 0, fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer s.Stop()

	if mode := os.Getenv("FLEXD_TEST_POOLER"); mode != "" {
		p, err := pooler(ctx, mode, s.URL)
		if err != nil {
			return 0, err
		}
		defer p.Stop()
	}

	return withTemplates(ctx, command, s.URL)
}

// pooler starts a pooler before the server, and has the tests' stores opened through it.
func pooler(ctx context.Context, mode, server string) (*postgres.Pooler, error) {
	direct, err := url.Parse(server)
	if err != nil {
		return nil, err
	}

	p, err := postgres.StartPooler(
		ctx,
		mode,
		direct,
		"max_client_conn = 5000",
		"server_idle_timeout = 5",
	)
	if err != nil {
		return nil, fmt.Errorf("start PgBouncer: %w", err)
	}

	through, err := url.Parse(p.URL)
	if err == nil {
		err = os.Setenv(storetest.PoolerEnv, through.Host)
	}
	if err != nil {
		p.Stop()
		return nil, err
	}

	return p, nil
}

// withTemplates runs the command with the stores that every process of tests copies.
func withTemplates(ctx context.Context, command []string, url string) (int, error) {
	dir, err := os.MkdirTemp("", "flexd-template-")
	if err != nil {
		return 0, err
	}

	defer os.RemoveAll(dir)

	env, err := storetest.Templates(ctx, dir, url)
	if err != nil {
		return 0, err
	}

	return child(ctx, command, append(env, storetest.Env+"="+url))
}

func child(ctx context.Context, command, env []string) (int, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	c.Stdin = os.Stdin
	c.Stdout = os.Stdout
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), env...)
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, exit.ExitCode()), nil
	}

	return 0, err
}
