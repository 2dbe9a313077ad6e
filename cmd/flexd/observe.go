package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"flexd/internal/flex"
	"flexd/internal/trace"
	"flexd/internal/web"
)

// observe has the flags by which an operator can inspect a running flexd.
type observe struct {
	SlowStatement time.Duration `help:"Log statements of the database that take longer than this, with the database's plan and without their arguments; ${default} if not given, 0 logs none." default:"1s" env:"FLEXD_SLOW_STATEMENT" placeholder:"DURATION"`
	Traces        string        `help:"Send traces of requests, pushes and background jobs to this collector, by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces." env:"FLEXD_TRACES" placeholder:"URL"`
	TracesShare   float64       `help:"Share of the requests that are traced, 0 to 1, of those that name no trace of their own; ${default} if not given." default:"1" env:"FLEXD_TRACES_SHARE" placeholder:"SHARE"`
	DebugListen   string        `help:"Serve profiles of the process (pprof) at this loopback address, such as 127.0.0.1:6060; none if not given." env:"FLEXD_DEBUG_LISTEN" placeholder:"HOST:PORT"`
}

// stopTraces is the longest time for sending the last traces.
const stopTraces = 5 * time.Second

// begin starts the services that the flags select. stop ends them.
func (o observe) begin(
	ctx context.Context,
	c console,
) (stop func(), err error) {
	if o.SlowStatement < 0 {
		return nil, flex.Fail(
			flex.Invalid,
			"--slow-statement is a time such as 500ms, or 0, not %s",
			o.SlowStatement,
		)
	}

	if o.TracesShare < 0 || o.TracesShare > 1 {
		return nil, flex.Fail(
			flex.Invalid,
			"--traces-share is a number from 0 to 1, not %g",
			o.TracesShare,
		)
	}

	l, err := o.debugListener()
	if err != nil {
		return nil, err
	}

	flush := func(context.Context) error { return nil }
	if o.Traces != "" {
		flush, err = trace.To(ctx, o.Traces, version(), o.TracesShare)
		if err != nil {
			return nil, flex.Fail(flex.Invalid, "--traces: %v", err)
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	if l != nil {
		fmt.Fprintf(c.err, "profiles at http://%s/debug/pprof/\n", l.Addr())
		go func() {
			if err := web.Debug(ctx, l); err != nil {
				fmt.Fprintf(c.err, "the profiles' listener ended: %v\n", err)
			}
		}()
	}

	return func() {
		cancel()

		late, cancel := context.WithTimeout(
			context.WithoutCancel(ctx),
			stopTraces,
		)

		defer cancel()
		if err := flush(late); err != nil {
			fmt.Fprintf(c.err, "the last traces were not sent: %v\n", err)
		}
	}, nil
}

// debugListener listens for profile requests. It uses only the loopback, because they need no
// password.
func (o observe) debugListener() (net.Listener, error) {
	if o.DebugListen == "" {
		return nil, nil
	}

	l, err := listenAt("--debug-listen", o.DebugListen)
	if err != nil {
		return nil, err
	}

	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		l.Close()
		return nil, flex.Fail(
			flex.Invalid,
			"--debug-listen: profiles ask for no password and are for this machine alone: give an address such as 127.0.0.1:6060, not %s",
			o.DebugListen,
		)
	}

	return l, nil
}
