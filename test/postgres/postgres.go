// Package postgres starts a PostgreSQL server of the tests' own: a cluster in a temporary
// folder, on a free port of the loopback.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"flexd/test/port"
)

// Binaries returns the folder of initdb and postgres, or "" where PostgreSQL is not
// installed.
func Binaries() string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) > 0 {
		slices.Sort(found)
		slices.Reverse(found)
		dirs = append(found, dirs...)
	}

	for _, dir := range dirs {
		if runnable(filepath.Join(dir, "initdb")) &&
			runnable(filepath.Join(dir, "postgres")) {
			return dir
		}
	}

	return ""
}

func runnable(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode()&0o111 != 0
}

// Server is a running server.
type Server struct {
	URL   string
	bin   string
	dir   string
	port  int
	as    *syscall.SysProcAttr
	args  []string
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has
}

// startTime is how long a server may take to its first answer, on however busy a machine.
const startTime = 2 * time.Minute

// Start makes a cluster and starts its server with the settings, each "name=value".
func Start(ctx context.Context, settings ...string) (*Server, error) {
	bin := Binaries()
	if bin == "" {
		return nil, errors.New("PostgreSQL is not installed (apt-get install postgresql)")
	}

	dir, err := os.MkdirTemp("", "flexd-pg-")
	if err != nil {
		return nil, err
	}

	s := &Server{bin: bin, dir: dir}
	if err := s.begin(ctx, settings); err != nil {
		s.Stop()
		return nil, err
	}

	return s, nil
}

// begin makes the cluster and starts the server for the first time.
func (s *Server) begin(ctx context.Context, settings []string) error {
	var err error
	s.as, err = unprivileged(s.dir)
	if err != nil {
		return err
	}

	data := filepath.Join(s.dir, "data")
	initdb := exec.CommandContext(
		ctx,
		filepath.Join(s.bin, "initdb"),
		"-D",
		data,
		"-U",
		"flexd",
		"-A",
		"trust",
		"-E",
		"UTF8",
		"--locale=C",
		"--no-sync",
	)

	initdb.SysProcAttr = s.as
	initdb.Dir = s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}

	s.port, err = port.Free()
	if err != nil {
		return err
	}

	s.URL = fmt.Sprintf(
		"postgres://flexd@%s/postgres?sslmode=disable",
		port.Address(s.port),
	)

	s.args = []string{
		"-D",
		data,
		"-p",
		strconv.Itoa(s.port),
		"-k",
		s.dir,
		"-c",
		"listen_addresses=127.0.0.1",
		"-c",
		"max_connections=600",
	}

	for _, set := range settings {
		s.args = append(s.args, "-c", set)
	}

	return s.run(ctx)
}

// run starts the server and waits until it takes connections.
func (s *Server) run(ctx context.Context) error {
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), s.args...)
	cmd.SysProcAttr = s.as
	cmd.Dir = s.dir
	log, err := os.OpenFile(
		filepath.Join(s.dir, "log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o644,
	)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd.Stdout = log
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		s.cmd = nil // there is nothing to stop
		return err
	}

	ended := make(chan struct{})
	s.cmd = cmd
	s.ended = ended
	go func() {
		cmd.Wait()
		close(ended)
	}()

	return s.wait(ctx)
}

// Restart ends the server without a checkpoint, as a crash would, and starts it again on
// the same folder.
func (s *Server) Restart(ctx context.Context) error {
	s.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown
	<-s.ended
	return s.run(ctx)
}

// Standby restarts the server as a standby of nobody: it is read, and takes no write until
// pg_promote is called.
func (s *Server) Standby(ctx context.Context) error {
	signal := filepath.Join(s.dir, "data", "standby.signal")
	if err := os.WriteFile(signal, nil, 0o644); err != nil {
		return err
	}

	if err := os.Chmod(signal, 0o666); err != nil { // a promotion removes it
		return err
	}

	return s.Restart(ctx)
}

// wait returns when the server takes connections.
func (s *Server) wait(ctx context.Context) error {
	why := fmt.Sprintf("no answer within %v", startTime)
	for end := time.Now().Add(startTime); s.running() && time.Now().Before(end); {
		ready := exec.CommandContext(
			ctx,
			filepath.Join(s.bin, "pg_isready"),
			"-q",
			"-h",
			"127.0.0.1",
			"-p",
			strconv.Itoa(s.port),
		)

		if ready.Run() == nil {
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()

		case <-s.ended:
			why = "it ended"

		case <-time.After(25 * time.Millisecond):
		}
	}

	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))

	return fmt.Errorf("%s\n%s", why, log)
}

func (s *Server) running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() {
	if s.cmd != nil {
		s.cmd.Process.Signal(syscall.SIGINT) // fast shutdown
		<-s.ended
	}
	os.RemoveAll(s.dir)
}

// unprivileged makes the folder belong to a user that PostgreSQL agrees to run as, when
// this process is root, and returns how to run as that user.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{Setpgid: true}, nil
	}

	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}

		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}

		as := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return &syscall.SysProcAttr{Setpgid: true, Credential: as}, nil
	}

	return nil, errors.New(
		"PostgreSQL does not run as root, and there is neither a user postgres nor nobody",
	)
}
