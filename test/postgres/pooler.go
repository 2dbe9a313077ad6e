package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"flexd/test/port"
)

// ErrNoPooler is the error where PgBouncer is not installed.
var ErrNoPooler = errors.New("PgBouncer is not installed (apt-get install pgbouncer)")

// Pooler is a PgBouncer before a server.
type Pooler struct {
	URL  string // of the database that it was started for
	stop func()
}

// pgbouncer is the program, or "" where it is not installed.
func pgbouncer() string {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if !runnable(program) {
		return ""
	}

	return program
}

// StartPooler starts a PgBouncer of a mode (session or transaction) before the server of the url, with further
// settings, each "name = value".
func StartPooler(
	ctx context.Context,
	mode string,
	target *url.URL,
	settings ...string,
) (*Pooler, error) {
	program := pgbouncer()
	if program == "" {
		return nil, ErrNoPooler
	}

	dir, err := os.MkdirTemp("", "flexd-pooler-")
	if err != nil {
		return nil, err
	}

	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}

	at, err := port.Free()
	if err != nil {
		return nil, err
	}

	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(poolerSettings(mode, target, at, settings)), 0o644); err != nil {
		return nil, err
	}

	cmd := exec.Command(program, "-q", file)
	cmd.SysProcAttr = as
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	through := *target
	through.Host = port.Address(at)
	p := &Pooler{
		URL: through.String(),
		stop: func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			os.RemoveAll(dir)
		},
	}

	if err := p.wait(ctx, through.Host); err != nil {
		p.Stop()
		return nil, err
	}

	return p, nil
}

// poolerSettings is the text of its file of settings.
func poolerSettings(
	mode string,
	target *url.URL,
	at int,
	more []string,
) string {
	return fmt.Sprintf(
		`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
%s
`,
		target.Hostname(),
		target.Port(),
		target.User.Username(),
		at,
		mode,
		strings.Join(more, "\n"),
	)
}

// wait returns when the pooler takes connections.
func (p *Pooler) wait(ctx context.Context, address string) error {
	var last error

	for end := time.Now().Add(startTime); time.Now().Before(end); {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		last = err

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}

	return fmt.Errorf("PgBouncer gives no answer: %w", last)
}

// Stop ends the pooler and removes its folder.
func (p *Pooler) Stop() { p.stop() }
