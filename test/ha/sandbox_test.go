// Package ha brings up the deployment of docs/high-availability.md: PostgreSQL with Patroni and
// etcd, and equal processes of flexd behind HAProxy, each on a machine of its own. It breaks one
// part after the other under load, and looks for what was acknowledged and is gone.
//
// A machine is a network namespace. All are inside of namespaces of the test's own, so that
// nothing of them is seen outside, and nothing is left when the test ends, however it does.
package ha

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"flexd/test/postgres"
)

// The test runs itself again inside of the namespaces: first as their init, which waits for
// orphans, then as the test.
const (
	stage   = "FLEXD_HA_STAGE"
	within  = "FLEXD_HA_FOLDER" // of all files, which the outermost removes
	asInit  = "init"
	asTests = "tests"
)

// absent is why the deployment cannot be brought up here, or "".
var absent string

func TestMain(m *testing.M) {
	switch os.Getenv(stage) {
	case asInit:
		os.Exit(serveOrphans())
	case asTests:
		os.Exit(m.Run())
	}

	if absent = missing(); absent != "" {
		os.Exit(m.Run()) // each test skips, or fails where the suite is strict
	}

	code, err := enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ha:", err)
		code = 1
	}
	os.Exit(code)
}

// need skips the test where the deployment cannot be brought up.
func need(t *testing.T) {
	t.Helper()
	switch {
	case absent == "":
	case os.Getenv("FLEXD_TEST_STRICT") != "" && absent != notAsked:
		t.Fatal(absent)
	default:
		t.Skip(absent)
	}
}

const notAsked = "takes minutes: make ha, or FLEXD_HA=1"

// packages are Debian's packages of what is run, by a program of each.
var packages = map[string]string{
	"patroni": "patroni", "etcd": "etcd-server", "haproxy": "haproxy", "ip": "iproute2", "nsenter": "util-linux",
}

// missing says what keeps the deployment from being brought up. It installs programs where it
// may.
func missing() string {
	if os.Getenv("FLEXD_HA") == "" && os.Getenv("FLEXD_LONG") == "" {
		return notAsked
	}
	if os.Geteuid() != 0 {
		return "needs root, for network namespaces"
	}

	var lacking []string
	look := func() {
		lacking = nil
		for program, name := range packages {
			if _, err := exec.LookPath(program); err != nil {
				lacking = append(lacking, name)
			}
		}
		if postgres.Binaries() == "" {
			lacking = append(lacking, "postgresql")
		}
	}

	look()
	if len(lacking) == 0 {
		return ""
	}

	if _, err := exec.LookPath("apt-get"); err == nil {
		install := exec.Command("sh", "-c", "apt-get update -q && apt-get install -y -q --no-install-recommends "+strings.Join(lacking, " "))
		install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := install.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ha: %v\n%s", err, out)
		}
		look()
	}
	if len(lacking) > 0 {
		return "not installed: " + strings.Join(lacking, " ")
	}
	return ""
}

// enter builds flexd and runs this program again in new namespaces.
func enter() (code int, err error) {
	dir, err := os.MkdirTemp("", "flexd-ha-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user
		return 0, err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "flexd"), "flexd/cmd/flexd")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}

	return again(asInit, dir, &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	})
}

// again runs this program with its arguments as a stage, and returns its exit code.
func again(as, dir string, attr *syscall.SysProcAttr) (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), stage+"="+as, within+"="+dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(1, exit.ExitCode()), nil
	}
	return 0, err
}

// serveOrphans is the first process of the namespaces. It prepares them, runs the tests and
// waits for whatever has lost its parent. All others end with it.
func serveOrphans() int {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "ha:", err)
		return 1
	}

	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ha:", err)
		return 1
	}
	os.Setenv(stage, asTests)
	tests, err := os.StartProcess(self, os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "ha:", err)
		return 1
	}

	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)

		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			fmt.Fprintln(os.Stderr, "ha: wait:", err)

			return 1
		case pid != tests.Pid:
		case status.Exited():
			return status.ExitStatus()
		default:
			fmt.Fprintln(os.Stderr, "ha: the tests ended by", status.Signal())
			return 1
		}
	}
}

// prepare makes the namespaces' own /proc and /run, and the network that the machines share.
func prepare() error {
	mounts := []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0},
	}
	for _, m := range mounts {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return ip(
		"link set lo up",
		"link add machines type bridge",
		"addr add "+network+"1/24 dev machines",
		"link set machines up",
	)
}

// network is the first three bytes of every machine's address. The test itself has number 1.
const network = "10.77.0."

// ip runs commands of ip.
func ip(commands ...string) error {
	for _, c := range commands {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w %s", c, err, out)
		}
	}
	return nil
}
