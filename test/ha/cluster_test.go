package ha

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/test/postgres"
)

// cluster is the whole deployment.
type cluster struct {
	*testing.T
	etcd, databases, services []*machine
	keys                      string // flexd's key file
	password                  string // of the organisation
}

// settings are what a cluster may be given other than what docs/high-availability.md says.
type settings struct {
	lossy bool // commits wait for no other machine
}

// startMax is how long the deployment may take to come up, on however busy a machine.
const startMax = 4 * time.Minute

// newCluster brings up three machines of etcd, three of PostgreSQL, and two of flexd with a
// HAProxy each, and returns when flexd answers on both.
func newCluster(t *testing.T, s settings) *cluster {
	t.Helper()
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}

	uid, _ := strconv.Atoi(owner.Uid)
	c := &cluster{T: t}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range c.machines() {
				t.Logf("log of %s:\n%s", m.name, m.tail())
			}
		}
	})

	for i := range 3 {
		c.etcd = append(c.etcd, newMachine(t, fmt.Sprintf("etcd%d", i+1), 11+i, uid))
	}
	for i := range 3 {
		c.databases = append(c.databases, newMachine(t, fmt.Sprintf("db%d", i+1), 21+i, uid))
	}
	for i := range 2 {
		c.services = append(c.services, newMachine(t, fmt.Sprintf("flexd%d", i+1), 31+i, uid))
	}
	c.setEtcd()
	c.setDatabases(s)
	c.setServices()

	for _, m := range append(c.etcd, c.databases...) {
		m.start()
	}
	c.until("a primary and its replicas", startMax, func() string { return c.unhealthyDatabase() })
	c.prepareStore()
	for _, m := range c.services {
		m.start()
	}
	c.until("flexd", startMax, c.unhealthy)
	return c
}

func (c *cluster) machines() []*machine {
	return append(append(append([]*machine{}, c.etcd...), c.databases...), c.services...)
}

func (c *cluster) setEtcd() {
	var members, dir []string
	for _, m := range c.etcd {
		members = append(members, m.name+"=http://"+m.address()+":2380")
		dir = append(dir, filepath.Join(m.dir, "data"))
	}
	for i, m := range c.etcd {
		m.programs = [][]string{{
			"etcd", "--name", m.name, "--data-dir", dir[i],
			"--listen-peer-urls", "http://" + m.address() + ":2380", "--initial-advertise-peer-urls", "http://" + m.address() + ":2380",
			"--listen-client-urls", "http://" + m.address() + ":2379", "--advertise-client-urls", "http://" + m.address() + ":2379",
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new",
			"--heartbeat-interval", "250", "--election-timeout", "2500", "--logger", "zap",
		}}
	}
}

// setDatabases has Patroni run PostgreSQL with the settings of deploy/ha.
func (c *cluster) setDatabases(s settings) {
	var hosts []string
	for _, m := range c.etcd {
		hosts = append(hosts, m.address()+":2379")
	}
	common := c.deployed("patroni.yml")
	if s.lossy {
		common = strings.NewReplacer("synchronous_mode: true", "synchronous_mode: false", `synchronous_commit: "on"`, `synchronous_commit: "local"`).Replace(common)
	}

	for _, m := range c.databases {
		own := strings.Replace(common, "unix_socket_directories: /tmp", "unix_socket_directories: "+m.dir, 1)
		m.programs = [][]string{{"patroni", m.file("patroni.yml", own)}}
		m.environment = []string{
			"PATRONI_NAME=" + m.name, "PATRONI_ETCD3_HOSTS=" + strings.Join(hosts, ","),
			"PATRONI_RESTAPI_LISTEN=" + m.address() + ":8008", "PATRONI_RESTAPI_CONNECT_ADDRESS=" + m.address() + ":8008",
			"PATRONI_POSTGRESQL_LISTEN=" + m.address() + ":5432", "PATRONI_POSTGRESQL_CONNECT_ADDRESS=" + m.address() + ":5432",
			"PATRONI_POSTGRESQL_DATA_DIR=" + filepath.Join(m.dir, "data"), "PATRONI_POSTGRESQL_BIN_DIR=" + postgres.Binaries(),
			"PATRONI_POSTGRESQL_PGPASS=" + filepath.Join(m.dir, "pgpass"),
			"PATRONI_SUPERUSER_USERNAME=postgres", "PATRONI_SUPERUSER_PASSWORD=" + secret,
			"PATRONI_REPLICATION_USERNAME=replicator", "PATRONI_REPLICATION_PASSWORD=" + secret,
		}
	}
}

const secret = "swordfish"

// deployed reads a file of what is shipped.
func (c *cluster) deployed(name string) string {
	c.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", "ha", name))
	if err != nil {
		c.Fatal(err)
	}
	return string(b)
}

// setServices gives each flexd a HAProxy on its own loopback, which sends it to whichever
// PostgreSQL is the primary by Patroni's word.
func (c *cluster) setServices() {
	haproxy := c.deployed("haproxy.cfg")
	for _, m := range c.databases {
		haproxy = strings.ReplaceAll(haproxy, " "+m.name+":", " "+m.address()+":")
	}
	flexd := filepath.Join(os.Getenv(within), "flexd")
	c.keys = filepath.Join(os.Getenv(within), c.Name()+".keys")
	if out, err := exec.Command(flexd, "key", "new", c.keys).CombinedOutput(); err != nil {
		c.Fatalf("flexd key new: %v\n%s", err, out)
	}

	key, err := os.ReadFile(c.keys)
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range c.services {
		proxy := m.file("haproxy.cfg", haproxy)
		m.programs = [][]string{
			{"haproxy", "-db", "-f", proxy},
			{
				flexd, "serve", "--database", localURL, "--key-file", m.file("keys", string(key)), "--environment", "sandbox",
				"--allow-private-endpoints", "--listen", m.address() + ":8080", "--log-level", "warn",
			},
		}
	}
}

const localURL = "postgres://postgres:" + secret + "@127.0.0.1:5432/flexd?sslmode=disable"

func databaseURL(m *machine, name string) string {
	return fmt.Sprintf("postgres://postgres:"+secret+"@%s:5432/%s?sslmode=disable&connect_timeout=1", m.address(), name)
}

// prepareStore makes flexd's database with one organisation in it.
func (c *cluster) prepareStore() {
	c.Helper()
	p := c.primary()
	c.sql(p, "postgres", "CREATE DATABASE flexd")
	var made map[string]string
	if err := json.Unmarshal(c.command(p, "org", "add", "Acme", "--username", "acme", "--json"), &made); err != nil {
		c.Fatal(err)
	}
	c.password = made["password"]
	c.sql(p, "flexd", "CREATE TABLE probe (id int PRIMARY KEY, n bigint)")
	c.sql(p, "flexd", "INSERT INTO probe VALUES (1, 0)")
}

// command runs a command of flexd on the primary's database.
func (c *cluster) command(primary *machine, args ...string) []byte {
	c.Helper()
	cmd := exec.Command(filepath.Join(os.Getenv(within), "flexd"),
		append(args, "--database", databaseURL(primary, "flexd"), "--key-file", c.keys, "--environment", "sandbox")...)
	cmd.Stderr = c.Output()
	out, err := cmd.Output()
	if err != nil {
		c.Fatalf("flexd %v: %v\n%s", args, err, out)
	}
	return out
}

// until waits until nothing is wrong any more.
func (c *cluster) until(what string, limit time.Duration, wrong func() string) {
	c.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		w := wrong()
		if w == "" {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("after %v there is not %s: %s", limit, what, w)
		}
	}
}

// get asks a machine and returns the status and the body of its answer; 0 if there is none.
func get(m *machine, port int, path string) (int, []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://%s:%d%s", m.address(), port, path), nil)
	if err != nil {
		panic(err)
	}

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, b
}

// primary is the machine whose Patroni says that it has the primary, or nil.
func (c *cluster) primary() *machine {
	for _, m := range c.databases {
		if m.down() {
			continue
		}
		if status, _ := get(m, 8008, "/primary"); status == http.StatusOK {
			return m
		}
	}
	return nil
}

// replica is a machine that has the synchronous replica, or any one where there is none such.
func (c *cluster) replica() *machine {
	for _, path := range []string{"/synchronous", "/replica"} {
		for _, m := range c.databases {
			if status, _ := get(m, 8008, path); status == http.StatusOK {
				return m
			}
		}
	}
	return nil
}

// etcdLeader is the machine that leads etcd, or nil.
func (c *cluster) etcdLeader() *machine {
	for _, m := range c.etcd {
		if _, b := get(m, 2379, "/metrics"); strings.Contains(string(b), "\netcd_server_is_leader 1\n") {
			return m
		}
	}
	return nil
}

// unhealthyDatabase says what is not as it should be of PostgreSQL and etcd, or "".
func (c *cluster) unhealthyDatabase() string {
	for _, m := range c.etcd {
		if _, b := get(m, 2379, "/health"); !strings.Contains(string(b), `"health":"true"`) {
			return m.name + ": " + string(b)
		}
	}

	roles, b := c.roles()
	if roles["leader"] != 1 || roles["replica"]+roles["sync_standby"] != 2 {
		return string(b)
	}
	if c.synchronous() && roles["sync_standby"] == 0 {
		return string(b)
	}
	return ""
}

// roles counts the databases that run in each role, as Patroni's answer has them.
func (c *cluster) roles() (map[string]int, []byte) {
	var cluster struct {
		Members []struct{ Name, Role, State string }
	}
	_, b := get(c.databases[0], 8008, "/cluster")
	if err := json.Unmarshal(b, &cluster); err != nil {
		return nil, b
	}

	roles := map[string]int{}
	for _, m := range cluster.Members {
		if m.State == "running" || m.State == "streaming" {
			roles[m.Role]++
		}
	}
	return roles, b
}

// withoutSynchronous reports whether all databases run and none of them is the synchronous replica.
func (c *cluster) withoutSynchronous() bool {
	roles, _ := c.roles()
	return c.synchronous() && roles["leader"] == 1 && roles["replica"] == 2
}

// forgetSynchronous does what docs/high-availability.md has an operator do where Patroni names no synchronous replica for
// minutes: it deletes what Patroni keeps of it in etcd, by etcd's JSON gateway, and Patroni names one anew.
func (c *cluster) forgetSynchronous() {
	key := fmt.Sprintf(`{"key": %q}`, base64.StdEncoding.EncodeToString([]byte("/service/flexd/sync")))
	for _, call := range []string{"range", "deleterange"} {
		resp, err := http.Post(fmt.Sprintf("http://%s:2379/v3/kv/%s", c.etcd[0].address(), call), "application/json", strings.NewReader(key))
		if err != nil {
			c.Logf("forget the synchronous replica: %v", err)
			return
		}

		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		c.Logf("Patroni names no synchronous replica, as an operator would see: %s: %s", call, b)
	}
}

// synchronous reports whether commits wait for a replica.
func (c *cluster) synchronous() bool {
	_, b := get(c.databases[0], 8008, "/config")
	var config struct {
		Synchronous bool `json:"synchronous_mode"`
	}
	return json.Unmarshal(b, &config) == nil && config.Synchronous
}

// unhealthy says what is not as it should be, or "".
func (c *cluster) unhealthy() string {
	if w := c.unhealthyDatabase(); w != "" {
		return w
	}
	for _, m := range c.services {
		if status, b := get(m, 8080, "/readyz"); status != http.StatusOK {
			return fmt.Sprintf("%s: %d %s", m.name, status, b)
		}
	}
	return ""
}
