package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/reward"
	"flexd/sim"
)

// night simulates the evening, and counts what the fleet did in it.
func (p *play) night(ctx context.Context) error {
	if err := p.run(ctx); err != nil {
		return err
	}

	// The job does so every five minutes: too late for who looks at the night now.
	_, err := p.app.Operations.CountPast(ctx)

	return err
}

// run plays the evening. It advances the organisation's clock frame by frame through the
// interface, as a client would. So every job that is due has run before the cars move.
func (p *play) run(ctx context.Context) error {
	step := time.Duration(p.Speed * float64(time.Minute) * frame.Seconds())
	// a fast evening moves more often, and no car leaves late
	parts := 1 + step/strideMax
	step /= parts
	tick := time.NewTicker(frame / parts)
	defer tick.Stop()
	now := *p.now.Load()
	settled := func() bool {
		return p.evening.Over() &&
			now.After(p.evening.Ended().Add(creditedAfter))
	}

	for nextPrint := now; !settled(); {
		if now.Sub(nextPrint) >= flex.HalfHour && !p.evening.Over() {
			nextPrint = flex.PeriodAt(now).Start()
			p.status(nextPrint)
		}

		next := now.Add(step)
		if !p.revised.IsZero() && !next.Before(p.revised) { // said before its pushes are
			p.printLine(p.revised, "market", p.revision)
			p.revised = time.Time{}
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}

		p.now.Store(&next) // pushes that arrive on the way are printed with this instant
		var err error
		now, err = p.client.SetClock(ctx, next)
		if err != nil {
			return err
		}
		if err := p.evening.Step(ctx, now); err != nil {
			return err
		}
	}

	return nil
}

// width is the greatest length of a line, in columns.
const width = 80

// printLine prints an event at an instant, in lines that fit a terminal.
func (p *play) printLine(at time.Time, name, text string) {
	margin := fmt.Sprintf(
		"  %s  %-6s ",
		flex.Clock(at, flex.London, "15:04"),
		name,
	)

	line, lines := margin, ""

	for i, word := range strings.Fields(text) {
		if i > 0 && len([]rune(line))+1+len([]rune(word)) > width {
			lines += line + "\n"
			line = strings.Repeat(" ", len(margin)-1)
		}

		if i > 0 {
			line += " "
		}

		line += word
	}

	fmt.Fprintln(p.out, lines+line)
}

// printPush describes a push in words.
func (p *play) printPush(h sim.Received) {
	_, profile := h.Charger.Received()
	p.printLine(
		*p.now.Load(),
		h.Charger.ExternalID,
		"◄ a new profile: "+sim.InWords(profile),
	)
}

// printOtherPush describes a push to a charger that the user of the demo has registered.
func (p *play) printOtherPush(externalID, _ string, profile []byte) {
	parsed, err := ocpp.Parse(profile)
	if err != nil {
		return
	}
	p.printLine(
		*p.now.Load(),
		externalID,
		"◄ yours, a new profile: "+sim.InWords(parsed),
	)
}

// headEvery is the number of lines of power between two header lines.
const headEvery = 6

// status prints the power now, with a column for each car and battery.
func (p *play) status(at time.Time) {
	var head, row strings.Builder
	head.WriteString("          £/MWh")
	fmt.Fprintf(
		&row,
		"  %s %7.2f",
		flex.Clock(at, flex.London, "15:04"),
		p.evening.Price(flex.PeriodAt(at)).GBPPerMWh(),
	)

	for _, v := range p.evening.Visits {
		mark := "-"
		if v.Car() != nil {
			mark = fmt.Sprintf("%.1f", v.Drawing(at).KW())
		}

		fmt.Fprintf(&head, " %6s", v.Name)
		fmt.Fprintf(&row, " %6s", mark)
	}

	for _, b := range p.evening.Batteries {
		fmt.Fprintf(&head, " %6s %5s", b.Name, "full")
		fmt.Fprintf(&row, " %6.1f %4.0f%%", b.Flow().KW(), b.Full())
	}

	if p.printed%headEvery == 0 {
		fmt.Fprintln(p.out, head.String())
	}

	p.printed++
	fmt.Fprintln(p.out, row.String())
}

// turns is a writer for many: a push arrives while the simulation runs.
type turns struct {
	io.Writer
	mu sync.Mutex
}

func (t *turns) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Writer.Write(b)
}

// sum is the morning's balance.
func (p *play) sum(ctx context.Context) {
	fmt.Fprintf(
		p.out,
		`
The morning's balance. Cost: at market prices. At once: had the car charged from
its arrival on. Credit: %g p for each kWh charged by a plan of flexd; the van
charges by a schedule of its own.

  %-6s %7s %7s %8s %8s %8s
  %-6s %7s %7s %8s %8s %8s
`,
		reward.DefaultCredit,
		"car",
		"wanted",
		"charged",
		"cost",
		"at once",
		"credit",
		"",
		"kWh",
		"kWh",
		"p",
		"p",
		"p",
	)

	for _, v := range p.evening.Visits {
		took := v.Took()
		credited := "-"
		remark := v.Case

		t, err := p.client.Transactions(ctx, v.Site, client.Page{})
		if err == nil && len(t.Transactions) > 0 {
			sum := client.Pence(0)
			for _, x := range t.Transactions {
				sum += x.CreditPence
			}

			credited = fmt.Sprint(int64(sum))
		}

		if short := v.NeedKWh - took.Got/1000; short > 0.1 {
			remark += fmt.Sprintf(": %.1f kWh short", short)
		}

		fmt.Fprintf(
			p.out,
			"  %-6s %7.1f %7.1f %8.1f %8.1f %8s  %s\n",
			v.Name,
			v.NeedKWh,
			took.Got/1000,
			took.Cost/1e4,
			v.AtOnce(p.evening.Price)/1e4,
			credited,
			remark,
		)
	}

	p.sumBatteries()

	fmt.Fprintf(
		p.out,
		"\nThe night of all cars:   %[1]s/console/past?day=%[2]s\nEach hour and push, why: %[1]s/console/\n",
		p.base,
		p.day,
	)
}

// sumBatteries prints the cost of each home with a battery, and its cost without one.
func (p *play) sumBatteries() {
	for _, b := range p.evening.Batteries {
		fmt.Fprintf(
			p.out,
			"\n  %-6s The home's %.1f kWh cost %.1f p, without the battery %.1f p; %.0f %% full.\n",
			b.Name,
			b.Drawn/1000,
			b.Cost/1e4,
			b.Without/1e4,
			b.Full(),
		)
	}
}
