package ha

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// machine is a network namespace with what runs in it.
type machine struct {
	*testing.T
	name     string
	number   int // the last byte of its address
	dir      string
	uid      int
	programs [][]string
	kept     sync.WaitGroup // of the programs

	environment []string // of the programs, beside what all have

	mu   sync.Mutex
	off  bool // killed, or not started
	held bool // stopped
	ends int
}

// newMachine makes a machine. Its programs run as the user of the id.
func newMachine(t *testing.T, name string, number, uid int) *machine {
	t.Helper()
	m := &machine{T: t, name: name, number: number, uid: uid, off: true, dir: filepath.Join(os.Getenv(within), t.Name(), name)}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(m.dir, uid, uid); err != nil {
		t.Fatal(err)
	}

	outer := "m" + strconv.Itoa(number)
	err := ip(
		"netns add "+name,
		"link add "+outer+" type veth peer name eth0 netns "+name,
		"link set "+outer+" master machines up",
		"-n "+name+" addr add "+m.address()+"/24 dev eth0",
		"-n "+name+" link set eth0 up",
		"-n "+name+" link set lo up",
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.kill()
		if err := ip("link del "+outer, "netns del "+name); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (m *machine) address() string { return network + strconv.Itoa(m.number) }

// file writes a file of the machine and returns its path.
func (m *machine) file(name, text string) string {
	m.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
	if err := os.Chown(path, m.uid, m.uid); err != nil {
		m.Fatal(err)
	}
	return path
}

// start runs the machine's programs, and each again a second after it ends, as systemd would.
func (m *machine) start() {
	m.Helper()
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		m.Fatal(err)
	}

	fmt.Fprintf(log, "--- start at %s\n", time.Now().Format(time.TimeOnly))
	m.mu.Lock()
	m.off = false
	m.mu.Unlock()
	for _, p := range m.programs {
		m.kept.Go(func() { m.keep(p, log) })
	}
	m.T.Cleanup(func() { log.Close() })
}

func (m *machine) keep(program []string, log *os.File) {
	id := strconv.Itoa(m.uid)
	for {
		cmd := exec.Command("nsenter", append([]string{"--net=/run/netns/" + m.name, "--setuid", id, "--setgid", id, "--"}, program...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = m.dir, log, log
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir, "LANG=C.UTF-8"}, m.environment...)
		m.mu.Lock()
		if m.off {
			m.mu.Unlock()
			return
		}

		err := cmd.Start()
		m.mu.Unlock()
		if err != nil {
			m.Errorf("%s: %v", program[0], err)
			return
		}
		cmd.Wait()

		m.mu.Lock()
		if !m.off {
			m.ends++
		}
		m.mu.Unlock()
		time.Sleep(time.Second)
	}
}

// down reports whether the test keeps the machine from working.
func (m *machine) down() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.off || m.held
}

// endings is how often a program of the machine ended by itself.
func (m *machine) endings() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ends
}

// processes are those that run on the machine, and no others: they are found by its namespace.
func (m *machine) processes() (pids []int) {
	out, err := exec.Command("ip", "netns", "pids", m.name).Output()
	if err != nil {
		return nil
	}
	for _, f := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to all processes of the machine.
func (m *machine) signal(s syscall.Signal) {
	for _, pid := range m.processes() {
		syscall.Kill(pid, s)
	}
}

// kill is the loss of the machine.
func (m *machine) kill() {
	m.mu.Lock()
	m.off, m.held = true, false
	m.mu.Unlock()
	for len(m.processes()) > 0 {
		m.signal(syscall.SIGKILL)
		time.Sleep(10 * time.Millisecond)
	}
	m.kept.Wait()
}

// stop holds the machine still.
func (m *machine) stop() {
	m.mu.Lock()
	m.held = true
	m.mu.Unlock()
	m.signal(syscall.SIGSTOP)
}

// resume lets it go on, as if no time had passed.
func (m *machine) resume() {
	m.signal(syscall.SIGCONT)
	m.mu.Lock()
	m.held = false
	m.mu.Unlock()
}

// part loses every packet between two machines: neither hears that the other is gone.
func part(a, b *machine) error {
	return ip(nowhere(a, b), nowhere(b, a))
}

// nowhere has what a machine sends to another go to a network card that nobody has.
func nowhere(from, to *machine) string {
	return fmt.Sprintf("-n %s neigh replace %s lladdr 02:00:00:00:00:de dev eth0 nud permanent", from.name, to.address())
}

// join ends what part began.
func join(a, b *machine) error {
	return ip(fmt.Sprintf("-n %s neigh del %s dev eth0", a.name, b.address()), fmt.Sprintf("-n %s neigh del %s dev eth0", b.name, a.address()))
}

// tail is the end of the machine's log, and before it what flexd failed at by itself.
func (m *machine) tail() string {
	b, _ := os.ReadFile(filepath.Join(m.dir, "log"))
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var kept []string
	for i, line := range lines {
		if i >= len(lines)-25 || strings.Contains(line, " status=500 ") || strings.HasPrefix(line, "flexd:") {
			kept = append(kept, line[:min(len(line), 600)])
		}
	}
	return strings.Join(kept, "\n")
}
