package main

import (
	"fmt"
	"html"
	"io"
	"math"
)

// The plot's picture, in pixels.
const (
	plotWidth, plotHeight = 960, 520
	plotLeft, plotTop     = 80, 30
	plotRight, plotBottom = 600, 450 // of the area with the lines; the legend is right of it
)

// plotColours are colours that people who cannot tell red from green can distinguish too
// (Okabe and Ito, 2008).
var plotColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// growthPlot draws the costs against the size of the fleet, with both axes logarithmic. A cost
// that does not grow is a level line. One that grows with the fleet rises by a decade for each
// decade.
type growthPlot struct {
	sites []int
	rows  []growthRow
	low   float64 // decade of the lowest cost, in ms
	high  float64 // and of the highest
}

func newGrowthPlot(sites []int, rows []growthRow) growthPlot {
	p := growthPlot{sites: sites, rows: rows, low: math.Inf(1), high: math.Inf(-1)}

	for _, r := range rows {
		for _, micros := range r.Micros {
			decade := math.Log10(max(micros, 0.001) / 1000)
			p.low = min(p.low, math.Floor(decade))
			p.high = max(p.high, math.Ceil(decade))
		}
	}
	if p.high == p.low {
		p.high++
	}

	return p
}

// x returns the position of a fleet's size; y returns that of a cost in milliseconds.
func (p growthPlot) x(sites int) float64 {
	first, last := math.Log10(float64(p.sites[0])), math.Log10(float64(p.sites[len(p.sites)-1]))
	share := (math.Log10(float64(sites)) - first) / (last - first)

	return plotLeft + share*(plotRight-plotLeft)
}

func (p growthPlot) y(ms float64) float64 {
	share := (math.Log10(max(ms, 1e-6)) - p.low) / (p.high - p.low)

	return plotBottom - share*(plotBottom-plotTop)
}

// write writes the plot as SVG.
func (p growthPlot) write(w io.Writer) error {
	out := &svg{w: w}
	out.writef(
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`,
		plotWidth,
		plotHeight,
	)
	out.writef(`<rect width="100%%" height="100%%" fill="white"/>`)

	p.axes(out)

	for i, row := range p.rows {
		p.line(out, row, plotColours[i%len(plotColours)], plotTop+20+24*i)
	}

	out.writef(`</svg>`)

	return out.err
}

func (p growthPlot) axes(out *svg) {
	for decade := p.low; decade <= p.high; decade++ {
		y := p.y(math.Pow(10, decade))
		out.writef(
			`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`,
			plotLeft,
			y,
			plotRight,
			y,
		)
		out.writef(
			`<text x="%d" y="%.1f" text-anchor="end">%g ms</text>`,
			plotLeft-8,
			y+4,
			math.Pow(10, decade),
		)
	}

	for _, n := range p.sites {
		x := p.x(n)
		out.writef(
			`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`,
			x,
			plotTop,
			x,
			plotBottom,
		)
		out.writef(`<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x, plotBottom+20, n)
	}

	out.writef(
		`<text x="%d" y="%d" text-anchor="middle">sites, with a plugged-in car each</text>`,
		(plotLeft+plotRight)/2,
		plotBottom+44,
	)
}

// line draws one cost, and names it in the legend at a height.
func (p growthPlot) line(out *svg, row growthRow, colour string, legend int) {
	points := ""
	for i, micros := range row.Micros {
		x, y := p.x(p.sites[i]), p.y(micros/1000)
		points += fmt.Sprintf("%.1f,%.1f ", x, y)
		out.writef(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, x, y, colour)
	}

	out.writef(
		`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`,
		points,
		colour,
	)
	out.writef(
		`<rect x="%d" y="%d" width="14" height="4" fill="%s"/>`,
		plotRight+20,
		legend-5,
		colour,
	)
	out.writef(
		`<text x="%d" y="%d">%s, x %.2f</text>`,
		plotRight+40,
		legend,
		html.EscapeString(row.What),
		row.Growth,
	)
}

// svg writes lines, and remembers the first error.
type svg struct {
	w   io.Writer
	err error
}

func (s *svg) writef(format string, values ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format+"\n", values...)
	}
}
