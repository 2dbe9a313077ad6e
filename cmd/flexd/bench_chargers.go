package main

import (
	"context"
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
	"path/filepath"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/lab/bench"
	"flexd/internal/ocppserver"
)

// benchChargersCommand measures many chargers that connect over TLS at once, are planned, and
// all lose their connections at once. flexd and the bridge run in this process, the chargers
// in another one.
type benchChargersCommand struct {
	Database string `help:"An empty store to run on; a temporary SQLite file if not given." placeholder:"URL"`
	Chargers int    `help:"How many chargers are simulated." default:"10000"`
	JSON     bool   `name:"json" help:"Print JSON instead of a table."`

	Greet time.Duration `hidden:"" help:"How long the bridge waits for a charger's first message; its own default if not given."`
}

// The targets on two cores, with flexd, bridge and chargers on the same machine.
const (
	benchServedTarget = 60 * time.Second
	benchMemoryTarget = 2048 // MiB
)

// chargersShare has the measurements of one process's chargers during one order.
type chargersShare struct {
	Served     int    `json:"served"`     // chargers whose every message was answered, with a profile since
	Unanswered int    `json:"unanswered"` // messages
	Dials      int    `json:"dials"`      // more than one a charger: it was tried again
	Millis     int64  `json:"millis"`     // until the last one was served
	Middle     int64  `json:"middle"`     // until half of them were
	Error      string `json:"error,omitempty"`
}

// Run prints the table.
func (b *benchChargersCommand) Run(ctx context.Context, c console) error {
	if b.Chargers < 1 || b.Chargers > 10_000 {
		return flex.Fail(
			flex.Invalid,
			"--chargers is 1 to 10000, not %d",
			b.Chargers,
		)
	}

	rows, err := b.measure(ctx, c)
	if err != nil {
		return err
	}
	if b.JSON {
		return c.json(rows)
	}

	return bench.Print(c.out, rows)
}

func (b *benchChargersCommand) measure(
	ctx context.Context,
	c console,
) ([]bench.Row, error) {
	dir, err := os.MkdirTemp("", "flexd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	h, done, err := openEmptyBench(ctx, b.Database, c)
	if err != nil {
		return nil, err
	}
	defer done()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()
	defer func() { cancel(); <-served }()

	run := &pushBench{app: h, base: "http://" + l.Addr().String()}
	if _, _, err := h.Access.AddOrg(ctx, "Bench", benchUser, benchPassword); err != nil {
		return nil, err
	}
	if err := run.onboard(ctx, b.Chargers); err != nil {
		return nil, err
	}

	address, ended, err := b.serveBridge(ctx, dir, run.base, c)
	if err != nil {
		return nil, err
	}
	defer func() { cancel(); <-ended }()

	return b.order(ctx, c, dir, address)
}

// order makes the chargers connect, and connect again, and returns their measurements.
func (b *benchChargersCommand) order(
	ctx context.Context,
	c console,
	dir, address string,
) ([]bench.Row, error) {
	p, err := startProcess(
		ctx,
		c,
		"bench",
		"sockets",
		"--address",
		address,
		"--authority",
		filepath.Join(dir, "cert.pem"),
		"--chargers",
		fmt.Sprint(b.Chargers),
	)
	if err != nil {
		return nil, err
	}
	defer p.end()

	watching, stop := context.WithCancel(ctx)
	peak := make(chan int, 1)
	go func() { peak <- peakMemory(watching) }()
	defer stop()

	first, err := p.chargers(orderBegin)
	if err != nil {
		return nil, err
	}

	second, err := p.chargers(orderAgain)
	if err != nil {
		return nil, err
	}

	stop()
	mib := <-peak

	return []bench.Row{
		b.row("connect over TLS at once, plug in and have their plans", first),
		b.row("lose their connections at once, connect again, are answered and have their plans", second),
		{
			What:   "messages without an answer",
			Target: "0",
			Here:   fmt.Sprint(first.Unanswered + second.Unanswered),
			Met:    first.Unanswered+second.Unanswered == 0,
		},
		{
			What:   "memory of flexd and the bridge, together",
			Target: fmt.Sprintf("<= %d MiB", benchMemoryTarget),
			Here:   fmt.Sprintf("%d MiB", mib),
			Met:    mib <= benchMemoryTarget,
		},
	}, nil
}

func (b *benchChargersCommand) row(label string, s chargersShare) bench.Row {
	took := time.Duration(s.Millis) * time.Millisecond
	return bench.Row{
		What:   fmt.Sprintf("%d chargers %s", b.Chargers, label),
		Target: fmt.Sprintf("all, <= %v", benchServedTarget),
		Here: fmt.Sprintf(
			"%d, half of them after %.1f s, the last after %.1f s, %d dials",
			s.Served,
			float64(s.Middle)/1000,
			took.Seconds(),
			s.Dials,
		),
		Met: s.Served == b.Chargers && took <= benchServedTarget,
	}
}

// serveBridge serves chargers over TLS. It returns the address, and a channel that receives
// the error with which the bridge ends.
func (b *benchChargersCommand) serveBridge(
	ctx context.Context,
	dir, base string,
	c console,
) (string, chan error, error) {
	chargers, err := listenOverTLS(dir)
	if err != nil {
		return "", nil, err
	}

	pushes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		chargers.Close()
		return "", nil, err
	}

	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		return "", nil, err
	}

	bridge := ocppserver.New(ocppserver.Settings{
		Client:      pooled(client.New(base, benchUser, benchPassword)),
		Password:    benchPassword,
		EndpointURL: "http://" + pushes.Addr().String(),
		State:       state,
		Timing:      ocppserver.Timing{Configure: b.Greet},
		Log: slog.New(slog.NewTextHandler(
			c.err,
			&slog.HandlerOptions{Level: slog.LevelError},
		)),
	})

	ended := make(chan error, 1)
	go func() {
		ended <- bridge.Serve(ctx, chargers, pushes)
	}()

	return "wss://" + chargers.Addr().String(), ended, nil
}

// listenOverTLS opens the chargers' listener, with a certificate of its own in the folder.
func listenOverTLS(dir string) (net.Listener, error) {
	cert := filepath.Join(dir, "cert.pem")
	key := filepath.Join(dir, "key.pem")
	if err := writeBenchCertificate(cert, key); err != nil {
		return nil, err
	}

	config, err := ocppserver.TLS(cert, key, "")
	if err != nil {
		return nil, err
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	return tls.NewListener(l, config), nil
}

// writeBenchCertificate makes a certificate for the loopback that is its own authority.
func writeBenchCertificate(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IsCA:         true,

		BasicConstraintsValid: true,
	}

	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}

	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}

	if err := writePEM(certFile, "CERTIFICATE", cert); err != nil {
		return err
	}

	return writePEM(keyFile, "PRIVATE KEY", private)
}

func writePEM(file, kind string, b []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})

	return os.WriteFile(file, text, 0o600)
}
