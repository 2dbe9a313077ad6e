package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/app"
	"flexd/internal/flex"
)

// Several processes share a wave, as several `flexd serve` on one store do. The benchmark is
// one of them, and starts the others as further processes of this program. It sends them a
// line on their standard input when they are to begin. They end when that input ends, which
// also happens if the benchmark is killed.

// waveShare is one process's part of a wave, or of its delivery.
type waveShare struct {
	Changed int    `json:"changed"` // schedules
	Tried   int    `json:"tried"`   // attempts to push
	MiB     int    `json:"mib"`     // held at the most, while it planned
	Error   string `json:"error,omitempty"`
}

// waveWorker is a process that plans a share of a wave.
type waveWorker interface {
	plan(ctx context.Context) (waveShare, error)
	deliver(ctx context.Context) (waveShare, error)
}

// ownWorker is this process.
type ownWorker struct {
	*app.App
	org flex.OrgID
}

func (o ownWorker) plan(ctx context.Context) (waveShare, error) {
	watching, stop := context.WithCancel(ctx)
	peak := make(chan int, 1)
	go func() { peak <- peakMemory(watching) }()
	r, err := o.Control.PlanDue(ctx)
	stop()

	return waveShare{Changed: r.Count, MiB: <-peak}, err
}

func (o ownWorker) deliver(ctx context.Context) (waveShare, error) {
	before, err := o.tried()
	if err == nil {
		err = o.Push.Drain(ctx, o.org)
	}

	var s waveShare
	if err == nil {
		s.Tried, err = o.tried()
	}

	s.Tried -= before

	return s, err
}

// tried returns the number of attempts to push that this process has made.
func (o ownWorker) tried() (int, error) {
	r := prometheus.NewRegistry()
	r.MustRegister(o.Push.Collectors()...)

	families, err := r.Gather()

	var n int
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "flexd_push_attempts_total" {
				n += int(m.GetCounter().GetValue())
			}
		}
	}

	return n, err
}

// benchWorkerCommand is a further process of a wave. The benchmark starts it.
type benchWorkerCommand struct {
	Database string `required:"" aliases:"db" placeholder:"URL"`
	Org      string `required:""`
}

// Commands to a further process.
const (
	orderPlan    = "plan"
	orderDeliver = "deliver"
)

// Run first prints that it is ready. It then answers each line of its input with what it has
// done of the wave, until the input ends.
func (b *benchWorkerCommand) Run(ctx context.Context, c console) error {
	org, err := flex.ParseID[struct{}](b.Org)
	if err != nil {
		return err
	}

	h, done, err := openBench(ctx, b.Database, c)
	if err != nil {
		return err
	}

	defer done()

	answers := json.NewEncoder(c.out)
	if err := answers.Encode(waveShare{}); err != nil {
		return err
	}

	own := ownWorker{h, flex.OrgID(org)}

	orders := bufio.NewScanner(c.in)
	for orders.Scan() {
		var s waveShare
		switch orders.Text() {
		case orderPlan:
			s, err = own.plan(ctx)
		case orderDeliver:
			s, err = own.deliver(ctx)
		default:
			err = fmt.Errorf("%q is no order", orders.Text())
		}

		if err != nil {
			s.Error = err.Error()
		}

		if err := answers.Encode(s); err != nil {
			return err
		}
	}

	return orders.Err()
}

// process is a worker in a process of its own.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startProcess starts a further process of this program. It is killed when the context ends.
func startProcess(
	ctx context.Context,
	c console,
	args ...string,
) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	p := &process{cmd: exec.CommandContext(ctx, self, args...)}
	p.cmd.Stderr = c.err
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}

	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}

	p.out = json.NewDecoder(out)

	return p, nil
}

// startWorker starts a further process of a wave and returns when it is ready.
func startWorker(
	ctx context.Context,
	database string,
	org flex.OrgID,
	c console,
) (*process, error) {
	p, err := startProcess(
		ctx,
		c,
		"bench",
		"worker",
		"--database",
		database,
		"--org",
		org.String(),
	)
	if err != nil {
		return nil, err
	}

	if _, err := p.answer(); err != nil {
		p.end()
		return nil, fmt.Errorf("a further process did not come up: %w", err)
	}

	return p, nil
}

func (p *process) answer() (waveShare, error) {
	var s waveShare
	err := p.out.Decode(&s)
	if err == nil && s.Error != "" {
		err = fmt.Errorf("process %d: %s", p.cmd.Process.Pid, s.Error)
	}

	return s, err
}

func (p *process) order(command string) (waveShare, error) {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return waveShare{}, err
	}
	return p.answer()
}

func (p *process) plan(context.Context) (waveShare, error) {
	return p.order(orderPlan)
}
func (p *process) deliver(context.Context) (waveShare, error) {
	return p.order(orderDeliver)
}

// end makes the process end, and waits for it.
func (p *process) end() error {
	p.in.Close()
	return p.cmd.Wait()
}
