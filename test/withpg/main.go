// Command withpg runs a command beside a PostgreSQL server of its own: it makes a cluster
// in a temporary folder, starts it on a free port of the loopback, runs the command with
// FLEXD_TEST_POSTGRES set to the server's URL, stops the server and removes the folder. It
// exits as the command did.
//
//	go run ./test/withpg go test ./...
//
// Where PostgreSQL is not installed it says so and runs the command without it; with
// FLEXD_TEST_STRICT set it fails instead.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bin := binaries()
	if bin == "" {
		if os.Getenv("FLEXD_TEST_STRICT") != "" {
			return 0, errors.New("PostgreSQL is not installed, and FLEXD_TEST_STRICT forbids to skip its half of the suite")
		}
		fmt.Fprintln(os.Stderr, "withpg: PostgreSQL is not installed (apt-get install postgresql): the suite's PostgreSQL half will be SKIPPED")
		return child(ctx, command, "")
	}
	s, err := start(ctx, bin)
	if err != nil {
		return 0, fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer s.stop()
	return child(ctx, command, s.url)
}

func child(ctx context.Context, command []string, url string) (int, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "FLEXD_TEST_POSTGRES="+url)
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, exit.ExitCode()), nil
	}
	return 0, err
}

// binaries returns the folder of initdb and postgres, or "".
func binaries() string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(found) > 0 {
		slices.Sort(found)
		slices.Reverse(found)
		dirs = append(found, dirs...)
	}
	for _, dir := range dirs {
		if runnable(filepath.Join(dir, "initdb")) && runnable(filepath.Join(dir, "postgres")) {
			return dir
		}
	}
	return ""
}

func runnable(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode()&0o111 != 0
}

type server struct {
	cmd *exec.Cmd
	dir string
	url string
}

func start(ctx context.Context, bin string) (*server, error) {
	dir, err := os.MkdirTemp("", "flexd-pg-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	as, err := unprivileged(dir)
	if err != nil {
		s.stop()
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "flexd", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = as, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		s.stop()
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		s.stop()
		return nil, err
	}
	// No sync: these are tests of SQL and of order, and the crash tests start their own server.
	s.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=300", "-c", "shared_buffers=256MB")
	s.cmd.SysProcAttr, s.cmd.Dir = as, dir
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		s.stop()
		return nil, err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		s.stop()
		return nil, err
	}
	s.url = fmt.Sprintf("postgres://flexd@127.0.0.1:%d/postgres?sslmode=disable", port)
	return s, s.wait(ctx, port)
}

// wait returns when the server takes connections.
func (s *server) wait(ctx context.Context, port int) error {
	for range 200 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			c.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			s.stop()
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	s.stop()
	return fmt.Errorf("no answer within 10 s\n%s", log)
}

func (s *server) stop() {
	if s.cmd != nil {
		s.cmd.Process.Signal(syscall.SIGINT) // fast shutdown
		s.cmd.Wait()
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
		return &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody: " + strings.TrimSpace(dir))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
