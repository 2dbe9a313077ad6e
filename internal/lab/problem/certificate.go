package problem

import (
	"math"

	"flexd/internal/engine/site"
	"flexd/internal/lab/certificate"
	"flexd/internal/lab/slots"
)

// Certificate is the proof of an answer's lower bound, as it is written. One or two of the
// fields are set. None is set for a pause, for which all candidates for the best are tried,
// and for a problem without a choice.
type Certificate struct {
	Threshold *float64  `json:"threshold_p_per_kwh,omitzero"`
	Worth     []float64 `json:"worth_p_per_kwh,omitzero"` // after each slot
	// before each slot, and at the end
	Stored []potential `json:"stored,omitzero"`
	// the same, by the run so far
	Wanted [][]potential `json:"wanted,omitzero"`
	Missed [][]potential `json:"missed,omitzero"`
	// the same, by the mode before
	Modes  [][]potential `json:"modes,omitzero"`
	Market []float64     `json:"market_p_per_kwh,omitzero"` // of each slot
	// of each group, the fleet first
	Caps [][]float64 `json:"caps_p_per_kwh,omitzero"`
	// of a home
	Site *site.Proof `json:"site,omitzero"`
}

// potential is a piecewise linear function, as [x, value] points.
type potential [][2]float64

func pairs(ps []certificate.Potential) []potential {
	var out []potential
	for _, p := range ps {
		points := make(potential, len(p.X))
		for i, x := range p.X {
			points[i] = [2]float64{x, p.V[i]}
		}
		out = append(out, points)
	}

	return out
}

func pairsOf(ps [][]certificate.Potential) [][]potential {
	var out [][]potential
	for _, p := range ps {
		out = append(out, pairs(p))
	}
	return out
}

// certify returns a proof as it is written.
func certify(p certificate.Proof) Certificate {
	return Certificate{
		Worth:  p.Worth,
		Stored: pairs(p.Stored),
		Wanted: pairsOf(p.Wanted),
		Missed: pairsOf(p.Missed),
		Modes:  pairsOf(p.Modes),
	}
}

// thresholdOf returns the certificate of a car that can take any power.
func thresholdOf(f slots.Result) Certificate {
	var c Certificate
	if !math.IsNaN(f.Threshold) {
		c.Threshold = &f.Threshold
	}
	return c
}
