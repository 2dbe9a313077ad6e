package homeassistant_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"flexd/internal/homeassistant"
	"flexd/test/port"
)

// mosquitto is the broker that Debian has, over TLS, with a user ha.
type mosquitto struct {
	port    int
	config  string
	trusted *tls.Config
	process *exec.Cmd
}

func installMosquitto(t *testing.T) *mosquitto {
	t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/mosquitto") // where no user's path leads
	}
	if err != nil && os.Getenv("FLEXD_TEST_STRICT") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}

	p, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	m := &mosquitto{port: p, config: file("mosquitto.conf"), trusted: certificate(t, file("certificate.pem"), file("key.pem"))}

	passwords := exec.Command("mosquitto_passwd", "-b", "-c", file("passwords"), "ha", "secret")
	if out, err := passwords.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	config := fmt.Sprintf("user root\nlistener %d 127.0.0.1\ncertfile %s\nkeyfile %s\npassword_file %s\nallow_anonymous false\n",
		p, file("certificate.pem"), file("key.pem"), file("passwords"))
	if err := os.WriteFile(m.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	m.start(t, program)
	t.Cleanup(m.stop)
	return m
}

func (m *mosquitto) start(t *testing.T, program string) {
	t.Helper()
	m.process = exec.Command(program, "-c", m.config)
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// stop ends the broker at once, so that it says nothing to anybody. It keeps nothing.
func (m *mosquitto) stop() {
	m.process.Process.Kill()
	m.process.Wait()
}

// certificate writes a certificate of the loopback and its key, and returns what trusts it.
func certificate(t *testing.T, certificate, key string) *tls.Config {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}

	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		pool.AppendCertsFromPEM(pem.EncodeToMemory(block))
	}

	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func (m *mosquitto) url() string { return fmt.Sprintf("mqtts://127.0.0.1:%d", m.port) }

// listen connects as Home Assistant does, under a name of its own, and returns what is said. What the broker
// keeps is said first.
func (m *mosquitto) listen(t *testing.T, name string) (*broker, mqtt.Client) {
	t.Helper()
	b := &broker{address: m.url(), said: make(chan string, 1000)}
	o := mqtt.NewClientOptions().AddBroker(b.address).SetClientID(name).SetUsername("ha").SetPassword("secret").SetTLSConfig(m.trusted)
	o.SetConnectRetry(true).SetConnectRetryInterval(50 * time.Millisecond).SetMaxReconnectInterval(50 * time.Millisecond)
	o.SetOnConnectHandler(func(c mqtt.Client) {
		c.Subscribe("#", 1, func(_ mqtt.Client, p mqtt.Message) { b.said <- p.Topic() + " " + string(p.Payload()) })
	})

	c := mqtt.NewClient(o)
	if token := c.Connect(); !token.WaitTimeout(time.Minute) || token.Error() != nil {
		t.Fatalf("mosquitto does not let %s in: %v", name, token.Error())
	}
	t.Cleanup(func() { c.Disconnect(0) })
	return b, c
}

// TestMosquitto shows a home at a broker that is not ours: over TLS, by a password, with its last
// will when another takes its connection, anew when the broker has lost everything, and with
// what is kept for who comes later.
func TestMosquitto(t *testing.T) {
	m, home := installMosquitto(t), flexd(t)
	program := m.process.Path
	first, assistant := m.listen(t, "homeassistant")
	s := settings(m.url(), home)
	s.TLS = m.trusted
	stop := start(t, s)

	golden(t, first.until(t, "flexd/site/"+site+"/availability online"))
	assistant.Publish("flexd/asset/"+charger+"/skip_night", 1, false, "PRESS")
	if got := <-home.pressed; !strings.HasPrefix(got, "/entities/asset/"+charger+"/event/skip-night") {
		t.Errorf("pressed %s", got)
	}

	// Who connects under the bridge's name has the broker end its connection.
	_, other := m.listen(t, "flexd-bridge")
	first.until(t, "flexd/status offline")
	other.Disconnect(0)
	first.until(t, "flexd/status online")

	m.stop()
	m.start(t, program)
	late, _ := m.listen(t, "late")
	late.until(t, "flexd_"+charger+"/skip_night/config {")
	late.until(t, "flexd/status online")

	stop()
	late.until(t, "flexd/status offline")
}

// A broker whose certificate nobody trusts, and one that asks for another password, are shown
// nothing.
func TestMosquitto_Refused(t *testing.T) {
	m, home := installMosquitto(t), flexd(t)
	said, _ := m.listen(t, "homeassistant")

	for name, change := range map[string]func(*homeassistant.Settings){
		"another authority": func(s *homeassistant.Settings) {
			s.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		},
		"another password": func(s *homeassistant.Settings) { s.Password = "wrong" },
	} {
		log := make(lines, 100)
		s := settings(m.url(), home)
		s.TLS, s.Log = m.trusted, slog.New(slog.NewTextHandler(log, nil))
		change(&s)
		stop := start(t, s)

		select {
		case line := <-log:
			if !strings.Contains(line, "does not let flexd in") {
				t.Errorf("%s: %s", name, line)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: nothing was logged", name)
		}
		stop()
	}

	if len(said.said) > 0 {
		t.Errorf("said %s", <-said.said)
	}
}
