package bench

import (
	"fmt"
	"time"

	"flexd/internal/engine/fleet"
	"flexd/internal/engine/random"
	"flexd/internal/lab/sample"
	"flexd/internal/lab/verify"
	"flexd/internal/lab/wave"
)

// mixedFleets plans fleets of cars and batteries, without and with a traded position. The
// excess over the optimum is at most the gap, which the bound proves.
func mixedFleets() ([]Row, error) {
	var rows []Row
	for _, m := range []struct {
		label  string
		target float64
		shape  sample.Shape
	}{
		{
			"fleets of 1,000 cars and 200 batteries, fleet and group caps",
			0.0005,
			sample.Shape{
				EVs:       1000,
				Batteries: 200,
				Cap:       0.4,
				Groups:    5,
				GroupCap:  0.5,
			},
		},
		{
			"the same around a traded position",
			0.002,
			sample.Shape{
				EVs:       1000,
				Batteries: 200,
				Cap:       0.4,
				Groups:    5,
				GroupCap:  0.5,
				Traded:    true,
			},
		},
	} {
		const fleets = 5
		worst, slowest := 0.0, time.Duration(0)
		d := random.Source(3)

		for range fleets {
			p := sample.Fleet(&d, m.shape)
			start := time.Now()
			a, err := fleet.Solve(p)
			if err != nil {
				return nil, err
			}

			slowest = max(slowest, time.Since(start))
			if err := verify.Fleet(p, &a); err != nil {
				return nil, err
			}

			worst = max(worst, (a.Cost-a.Bound)/a.Turnover)
		}

		rows = append(rows, Row{
			What:   fmt.Sprintf("%d %s", fleets, m.label),
			Target: fmt.Sprintf("excess <= %g %% of turnover", 100*m.target),
			Here: fmt.Sprintf(
				"proven <= %.5f %%, slowest %.2f s",
				100*worst,
				slowest.Seconds(),
			),
			Met: worst <= m.target,
		})
	}

	return rows, nil
}

// pushChoice replays half-hourly updates of the prices of 2018 for fleets that follow the
// rule for pushes, every change, and none.
func pushChoice(prices []float64) Row {
	const week, noon = 7 * 48, 24
	rule := wave.Study{Rule: wave.DefaultRule}
	every := wave.Study{}
	noPushes := wave.Study{Rule: wave.Rule{Saving: 1e9}}
	d := random.Source(81)

	for day := week + noon; day+96 < len(prices); day += week {
		cars := wave.SampleCars(&d, 300)
		for _, s := range []*wave.Study{&rule, &every, &noPushes} {
			s.Day(prices, day, cars)
		}
	}

	pushed, savingShare := float64(rule.Pushed)/float64(rule.Assets), (noPushes.Cost-rule.Cost)/(noPushes.Cost-every.Cost)

	return Row{
		What:   "push choice, half-hourly price updates of 2018",
		Target: "<= 5 % of the cars, >= 90 % of the saving",
		Here: fmt.Sprintf(
			"%.1f %% of the cars, %.0f %% of the saving",
			100*pushed,
			100*savingShare,
		),
		Met: pushed <= 0.05 && savingShare >= 0.9,
	}
}
