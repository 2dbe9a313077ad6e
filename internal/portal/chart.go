package portal

import (
	"fmt"
	"html/template"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

// The chart's measures, in pixels of its own coordinates.
const (
	barWidth    = 14
	chartHeight = 120
	chartFoot   = 18
)

// chart draws the baseline beside what was metered, a pair of bars a half-hour. It is empty
// where there is nothing to compare; the table beside it says the same in numbers.
func (l *speech) chart(periods []reward.Period) template.HTML {
	var most flex.WattHours
	compared := false

	for _, p := range periods {
		for _, e := range []*flex.WattHours{p.Baseline, p.Metered} {
			if e != nil {
				most = max(most, *e, -*e)
			}
		}

		compared = compared || p.Baseline != nil && p.Metered != nil
	}

	if !compared || most == 0 {
		return ""
	}

	width := len(periods)*(2*barWidth+10) + 10
	var b strings.Builder
	fmt.Fprintf(
		&b,
		`<svg class="chart" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`,
		width,
		chartHeight+chartFoot,
		width,
		chartHeight+chartFoot,
		l.say("Usual and metered energy in each half-hour"),
	)

	for i, p := range periods {
		x := 10 + i*(2*barWidth+10)
		for j, bar := range []struct {
			class  string
			energy *flex.WattHours
		}{{"usual", p.Baseline}, {"metered", p.Metered}} {
			if bar.energy == nil {
				continue
			}

			h := int(max(*bar.energy, -*bar.energy) * chartHeight / most)
			fmt.Fprintf(
				&b,
				`<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`,
				bar.class,
				x+j*barWidth,
				chartHeight-h,
				barWidth-1,
				max(h, 1),
			)
		}

		if i%2 == 0 {
			fmt.Fprintf(
				&b,
				`<text x="%d" y="%d">%s</text>`,
				x,
				chartHeight+chartFoot-4,
				clockIn(p.Start, flex.London),
			)
		}
	}

	b.WriteString(`</svg>`)

	return template.HTML(b.String()) // numbers and our own words alone
}
