package ha

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is one way in which the deployment breaks.
type fault struct {
	group, name string
	hold        time.Duration // how long it lasts; 0: until the service is back
	begin       func(*cluster) breakage
}

// breakage is a fault that was begun.
type breakage struct {
	what    string
	mend    func()
	without []*machine // of flexd, those that cannot work before it is mended
	mute    *machine   // which gives no answer, or a late one
}

// Times that faults last.
const (
	pauseTime = 15 * time.Second // shorter than Patroni's ttl: nobody takes over
	longTime  = 30 * time.Second // longer: somebody does
)

func faults() []fault {
	return []fault{
		{"primary lost", "the primary's machine is lost", 0, func(c *cluster) breakage { return lose(c.met((*cluster).primary)) }},
		{"primary lost", "the primary's PostgreSQL is killed", 0, killPostgres},
		{"other lost", "the synchronous replica's machine is lost", 0, func(c *cluster) breakage { return lose(c.met((*cluster).replica)) }},
		{"other lost", "etcd's leader is lost", 0, func(c *cluster) breakage { return lose(c.met((*cluster).etcdLeader)) }},
		{"flexd", "a flexd is lost", 0, func(c *cluster) breakage { return alone(lose, c.services[0]) }},
		{"flexd", "a flexd is stopped for 15 s", pauseTime, func(c *cluster) breakage { return alone(hold, c.services[1]) }},
		{"stopped", "the primary's machine is stopped for 15 s", pauseTime, func(c *cluster) breakage { return hold(c.met((*cluster).primary)) }},
		{"stopped", "the primary's machine is stopped for 30 s", longTime, func(c *cluster) breakage { return hold(c.met((*cluster).primary)) }},

		{"stopped", "the synchronous replica's machine is stopped for 15 s", pauseTime, func(c *cluster) breakage { return hold(c.met((*cluster).replica)) }},
		{"stopped", "etcd's leader is stopped for 15 s", pauseTime, func(c *cluster) breakage { return hold(c.met((*cluster).etcdLeader)) }},
		{"parted databases", "the primary and the synchronous replica are parted", longTime, func(c *cluster) breakage {
			return cut(c.met((*cluster).primary), c.met((*cluster).replica))
		}},
		{"parted databases", "the primary and etcd are parted", longTime, func(c *cluster) breakage { return cut(c.met((*cluster).primary), c.etcd...) }},
		{"parted databases", "the primary and etcd's leader are parted", longTime, func(c *cluster) breakage {
			return cut(c.met((*cluster).primary), c.met((*cluster).etcdLeader))
		}},
		{"parted others", "the primary is cut off from all", longTime, cutOff},
		{"parted others", "etcd's leader and the others of etcd are parted", longTime, func(c *cluster) breakage {
			leader := c.met((*cluster).etcdLeader)

			return cut(leader, except(c.etcd, leader)...)
		}},
		{"parted others", "a flexd and the primary are parted", longTime, func(c *cluster) breakage {
			b := cut(c.services[0], c.met((*cluster).primary))
			b.without = c.services[:1]
			return b
		}},
	}
}

// met is the machine that has a part now, whose answer a busy machine may owe for a while.
func (c *cluster) met(part func(*cluster) *machine) (m *machine) {
	c.Helper()
	c.until("a machine with the part that is to break", settleMax, func() string {
		m = part(c)
		if m == nil {
			return "none says that it has it"
		}
		return ""
	})
	return m
}

// lose kills all that runs on a machine.
func lose(m *machine) breakage {
	m.kill()
	return breakage{what: m.name, mend: m.start}
}

// hold stops all that runs on a machine.
func hold(m *machine) breakage {
	m.stop()
	return breakage{what: m.name, mend: m.resume}
}

// alone breaks a machine of flexd.
func alone(how func(*machine) breakage, m *machine) breakage {
	b := how(m)
	b.without, b.mute = []*machine{m}, m
	return b
}

// cut parts a machine from others.
func cut(m *machine, others ...*machine) breakage {
	names := []string{m.name}
	for _, o := range others {
		if err := part(m, o); err != nil {
			m.Fatal(err)
		}
		names = append(names, o.name)
	}

	return breakage{what: strings.Join(names, " "), mend: func() {
		for _, o := range others {
			if err := join(m, o); err != nil {
				m.Fatal(err)
			}
		}
	}}
}

func cutOff(c *cluster) breakage {
	p := c.met((*cluster).primary)
	b := cut(p, except(c.machines(), p)...)
	b.what = p.name
	return b
}

// killPostgres kills PostgreSQL's first process and leaves Patroni alone.
func killPostgres(c *cluster) breakage {
	p := c.met((*cluster).primary)
	text, err := os.ReadFile(filepath.Join(p.dir, "data", "postmaster.pid"))
	if err != nil {
		c.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		c.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	return breakage{what: p.name, mend: func() {}}
}

func except(all []*machine, one *machine) (rest []*machine) {
	for _, m := range all {
		if m != one {
			rest = append(rest, m)
		}
	}
	return rest
}
