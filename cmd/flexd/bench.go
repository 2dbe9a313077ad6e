package main

import (
	"flexd/internal/lab/bench"
	"flexd/sim"
)

// benchCommand measures flexd on the machine that it runs on.
type benchCommand struct {
	Plan     benchPlanCommand     `cmd:"" help:"Time the planners and compare them with their targets."`
	Wave     benchWaveCommand     `cmd:"" help:"Time a wave: new prices, a whole fleet planned again, and its pushes delivered."`
	Worker   benchWorkerCommand   `cmd:"" hidden:"" help:"A further process of a wave, which bench wave starts."`
	Chargers benchChargersCommand `cmd:"" help:"Connect many chargers over TLS at once, plan them, and connect them again."`
	Sockets  benchSocketsCommand  `cmd:"" hidden:"" help:"The chargers of bench chargers, which starts it."`
	Growth   benchGrowthCommand   `cmd:"" help:"Time a plug-in, a page of sites, a wave and a settlement in fleets of several sizes."`
	Push     benchPushCommand     `cmd:"" help:"Time a plug-in to its push, and deliveries, over real sockets."`
}

// benchPlanCommand times the planners.
type benchPlanCommand struct {
	Large bool `help:"Plan a coupled fleet of a million cars too, which takes a minute and a gigabyte."`
	JSON  bool `name:"json" help:"Print JSON instead of a table."`
}

// Run prints the table.
func (b *benchPlanCommand) Run(c console) error {
	known, err := sim.Prices2018()
	if err != nil {
		return err
	}

	prices := make([]float64, len(known))
	for i, p := range known {
		prices[i] = p.Price.GBPPerMWh()
	}

	rows, err := bench.Planners(prices, b.Large)
	if err != nil {
		return err
	}
	if b.JSON {
		return c.json(rows)
	}

	return bench.Print(c.out, rows)
}
