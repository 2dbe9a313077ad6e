package problem

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// oracle is a mixed-integer programme written down in full, with a binary for everything
// that is on or off and for every direction, and solved by a textbook simplex tableau and
// depth-first branch and bound. It is slow, and shares no code with the planner.
type oracle struct {
	names  map[string]int
	upper  []float64
	binary []bool
	rows   []oracleRow
}

type oracleRow struct {
	terms []oracleTerm
	less  bool // <= right, otherwise = right
	right float64
}

type oracleTerm struct {
	variable int
	value    float64
}

// inOrder are the terms of a sum by variable.
func inOrder(sum map[int]float64) []oracleTerm {
	var terms []oracleTerm
	for _, j := range slices.Sorted(maps.Keys(sum)) {
		terms = append(terms, oracleTerm{j, sum[j]})
	}
	return terms
}

// v is the variable of a name and slot, from 0 to upper.
func (o *oracle) v(name string, t int, upper float64, binary bool) int {
	key := fmt.Sprintf("%s_%d", name, t)
	if j, ok := o.names[key]; ok {
		return j
	}
	o.names[key] = len(o.upper)
	o.upper = append(o.upper, upper)
	o.binary = append(o.binary, binary)
	return len(o.upper) - 1
}

func (o *oracle) row(less bool, right float64, terms ...any) {
	sum := map[int]float64{}
	for i := 0; i < len(terms); i += 2 {
		sum[terms[i+1].(int)] += terms[i].(float64)
	}
	o.rows = append(o.rows, oracleRow{inOrder(sum), less, right})
}

// least solves for a cost, or returns +Inf. best is a value that must be beaten.
func (o *oracle) least(cost map[int]float64, fixed map[int]float64, best float64) float64 {
	x, value := o.relaxed(cost, fixed)
	if x == nil || value > best-1e-7 {
		return best
	}

	at, far := -1, 1e-7
	for j, b := range o.binary {
		if part := math.Abs(x[j] - math.Round(x[j])); b && part > far {
			at, far = j, part
		}
	}
	if at < 0 {
		return value
	}

	first := math.Round(x[at])
	for _, to := range []float64{first, 1 - first} {
		fixed[at] = to
		best = o.least(cost, fixed, best)
	}
	delete(fixed, at)
	return best
}

// relaxed solves the linear relaxation by the two-phase tableau with Bland's rule. Upper
// bounds are rows. Variables that are fixed, or can only be 0, have no column.
func (o *oracle) relaxed(cost map[int]float64, fixed map[int]float64) (x []float64, value float64) {
	x = make([]float64, len(o.upper))
	column := make([]int, len(o.upper))
	var rows []oracleRow
	n := 0

	for j, u := range o.upper {
		column[j] = -1
		if to, ok := fixed[j]; ok {
			x[j] = to
		} else if u > 0 {
			column[j] = n
			n++
			rows = append(rows, oracleRow{[]oracleTerm{{j, 1}}, true, u})
		}
	}

	for _, r := range o.rows {
		left := oracleRow{make([]oracleTerm, 0, len(r.terms)), r.less, r.right}
		for _, e := range r.terms {
			if column[e.variable] >= 0 {
				left.terms = append(left.terms, e)
			} else {
				left.right -= e.value * x[e.variable]
			}
		}

		if len(left.terms) > 0 {
			rows = append(rows, left)
		} else if left.right < -1e-7 || !r.less && left.right > 1e-7 {
			return nil, 0
		}
	}

	tab, basis, artificial := o.tableau(rows, column, n)
	m, width := len(rows), len(tab[0])
	phase := make([]float64, width)
	for k := artificial; k < width-1; k++ {
		phase[k] = 1
	}
	if tableau(tab, basis, phase, width-1) > 1e-7 {
		return nil, 0
	}

	costs := make([]float64, width)
	for j, c := range cost {
		if column[j] >= 0 {
			costs[column[j]] = c
		} else {
			value += c * x[j]
		}
	}

	value += tableau(tab, basis, costs, artificial)
	solved := make([]float64, width)
	for i := range m {
		solved[basis[i]] = tab[i][width-1]
	}

	for j, k := range column {
		if k >= 0 {
			x[j] = solved[k]
		}
	}
	return x, value
}

// tableau returns the rows: variables, slacks, the artificial variables, which begin at the
// returned column, and the right side.
func (o *oracle) tableau(rows []oracleRow, column []int, n int) (tab [][]float64, basis []int, artificial int) {
	m, slacks, needed := len(rows), 0, 0
	for _, r := range rows {
		if r.less {
			slacks++
		}
		if !r.less || r.right < 0 {
			needed++
		}
	}

	slack := n
	artificial = n + slacks
	next, width := artificial, artificial+needed+1
	all := make([]float64, (m+1)*width)
	tab, basis = make([][]float64, m+1), make([]int, m)

	for i, r := range rows {
		sign := 1.0
		if r.right < 0 {
			sign = -1
		}
		tab[i] = all[i*width : (i+1)*width]
		for _, e := range r.terms {
			tab[i][column[e.variable]] = sign * e.value
		}

		tab[i][width-1] = sign * r.right
		if r.less {
			tab[i][slack] = sign
			basis[i] = slack
			slack++
		}

		if !r.less || sign < 0 {
			tab[i][next] = 1
			basis[i] = next
			next++
		}
	}
	return tab, basis, artificial
}

// tableau pivots to the optimum over the first columns and returns its value.
func tableau(tab [][]float64, basis []int, cost []float64, columns int) float64 {
	m, last := len(basis), len(cost)-1
	z := append([]float64(nil), cost...)
	for i, j := range basis {
		if f := cost[j]; f != 0 {
			for k, a := range tab[i] {
				z[k] -= f * a
			}
		}
	}
	tab[m] = z

	for pivots := 0; ; pivots++ {
		in, most := -1, -1e-9
		for k := range columns {
			if z[k] < most {
				in, most = k, z[k]
				if pivots < 2000 {
					continue
				}
				break // Bland's rule, once Dantzig's has had its time
			}
		}

		if in < 0 {
			return -z[last]
		}

		out, least := -1, math.Inf(1)
		for i := range m {
			if basis[i] >= columns && math.Abs(tab[i][in]) > 1e-9 { // an artificial one, which stays 0
				out = i
				break
			}
			if a := tab[i][in]; a > 1e-9 {
				if r := tab[i][last] / a; r < least-1e-12 || r < least+1e-12 && basis[i] < basis[out] {
					out, least = i, r
				}
			}
		}

		if out < 0 {
			return math.Inf(-1)
		}
		turn(tab, out, in, columns)
		basis[out] = in
	}
}

// turn brings a column into the basis.
func turn(tab [][]float64, out, in, columns int) {
	row := tab[out]
	last := len(row) - 1
	f := 1 / row[in]
	var at []int
	for k := range last + 1 {
		if row[k] *= f; row[k] != 0 && (k < columns || k == last) {
			at = append(at, k)
		}
	}

	for i, other := range tab {
		if f := other[in]; i != out && f != 0 {
			for _, k := range at {
				other[k] -= f * row[k]
			}
		}
	}
}

// oracleHome has the best values of a small home.
func oracleHome(l *homeLine) (shortfall, peak, cost float64) {
	o, g := newOracle(l)
	shortfall = o.least(g.shorts, map[int]float64{}, math.Inf(1))
	o.rows = append(o.rows, oracleRow{inOrder(g.shorts), true, shortfall + 1e-7})
	peak = o.least(g.peaks, map[int]float64{}, math.Inf(1))
	o.rows = append(o.rows, oracleRow{inOrder(g.peaks), true, peak + 1e-7})
	return shortfall, peak, o.least(g.price, map[int]float64{}, math.Inf(1)) + g.constant
}

// oracleGoals has the goals, which are minimised in order.
type oracleGoals struct {
	shorts, peaks, price map[int]float64
	constant             float64 // of the price
}

// newOracle states a home as the oracle's programme.
func newOracle(l *homeLine) (*oracle, oracleGoals) {
	o := &oracle{names: map[string]int{}}
	n, h := len(l.Load), l.SlotHours
	price, shorts, peaks := map[int]float64{}, map[int]float64{}, map[int]float64{}
	balance, own := make([][]any, n), make([][]any, n)
	gives, charges := make([][]any, n), make([][]int, n)
	constant, power := 0.0, 0.0

	for k, b := range l.Batteries {
		id := string(rune('a' + k))
		power += b.DischargeKW * h

		for t := range n {
			c, d := o.v("bc"+id, t, b.ChargeKW*h, false), o.v("bd"+id, t, b.DischargeKW*h, false)
			s, z := o.v("bs"+id, t, b.SoCMax-b.SoCMin, false), o.v("bz"+id, t, 1, true)
			o.row(true, 0, 1.0, c, -b.ChargeKW*h, z)
			o.row(true, b.DischargeKW*h, 1.0, d, b.DischargeKW*h, z)
			if t == 0 {
				o.row(false, b.SoCInit-b.SoCMin, 1.0, s, -b.EffCharge, c, 1/b.EffDischarge, d)
			} else {
				o.row(false, 0, 1.0, s, -1.0, o.v("bs"+id, t-1, 0, false), -b.EffCharge, c, 1/b.EffDischarge, d)
			}

			balance[t] = append(balance[t], -1.0, c, 1.0, d)
			gives[t] = append(gives[t], 1.0, d)
			price[d] += b.Wear
			if t == n-1 {
				price[s] -= b.Terminal
				constant -= b.Terminal * b.SoCMin
			}
		}
	}

	for k, c := range l.Cars {
		id := string(rune('p' + k))
		var sum []any
		need := c.Energy
		if c.V2G != nil {
			need = c.V2G.Target
		}
		short := o.v("short"+id, 0, need, false)
		shorts[short] = 1

		for t := range n {
			most := c.MaxKW * c.AvailHours[t]
			inPeak := c.OffPeak != nil && c.OffPeak[t] == 0
			if inPeak && !c.MayChargePeak {
				most = 0
			}

			x, z := o.v("cx"+id, t, most, false), o.v("c"+id+"z", t, 1, true)
			o.row(true, 0, 1.0, x, -most, z)
			o.row(true, 0, -1.0, x, min(most, c.MinKW*c.AvailHours[t]), z)
			o.start("c"+id, t, z, c.StartCost, price)
			balance[t] = append(balance[t], -1.0, x)
			sum = append(sum, 1.0, x)
			if most > 0 {
				charges[t] = append(charges[t], z)
			}

			if inPeak {
				peaks[x] = 1
			}

			if v := c.V2G; v != nil {
				d, y := o.v("cd"+id, t, v.DischargeKW*c.AvailHours[t], false), o.v("cy"+id, t, 1, true)
				s := o.v("cs"+id, t, v.SoCMax, false)
				o.row(true, 0, 1.0, d, -v.DischargeKW*c.AvailHours[t], y)
				o.row(true, 0, -1.0, d, v.MinDischargeKW*c.AvailHours[t], y)
				o.row(true, 1, 1.0, y, 1.0, z)
				o.row(true, 0, -1.0, s, v.Reserve, y)
				if t == 0 {
					o.row(false, v.SoCArrival, 1.0, s, -v.EffCharge, x, 1/v.EffDischarge, d)
				} else {
					o.row(false, 0, 1.0, s, -1.0, o.v("cs"+id, t-1, 0, false), -v.EffCharge, x, 1/v.EffDischarge, d)
				}

				balance[t] = append(balance[t], 1.0, d)
				price[d] += v.Wear
			}
		}

		if c.V2G != nil {
			o.row(true, -need, -1.0, o.v("cs"+id, n-1, 0, false), -1.0, short)
		} else {
			o.row(false, need, append(sum, 1.0, short)...)
		}
	}

	if k := l.Tank; k != nil {
		for t := range n {
			s, z := o.v("ts", t, k.Max-k.Min, false), o.v("tz", t, 1, true)
			size, kept := k.ElementKW*h, 1-k.Loss
			if t == 0 {
				o.row(false, k.Init*kept-k.Draw[t]-k.Min, 1.0, s, -size, z)
			} else {
				o.row(false, kept*k.Min-k.Draw[t]-k.Min, 1.0, s, -kept, o.v("ts", t-1, 0, false), -size, z)
			}

			o.start("t", t, z, k.StartCost, price)
			balance[t], own[t] = append(balance[t], -size, z), append(own[t], -size, z)
			if t == n-1 {
				price[s] -= k.Terminal
				constant -= k.Terminal * k.Min
			}
		}
	}

	if k := l.Heat; k != nil {
		const zero = -60.0 // temperatures are above it
		step := h / k.Capacity
		kept := 1 - step/k.Resistance

		for t := range n {
			q, z := o.v("hq", t, k.MaxKW*h, false), o.v("hz", t, 1, true)
			T, under, over := o.v("hT", t, 160, false), o.v("hu", t, 160, false), o.v("ho", t, 160, false)
			o.row(true, 0, 1.0, q, -k.MaxKW*h, z)
			o.row(true, 0, -1.0, q, k.MinKW*h, z)
			gain := step * (k.Outdoor[t]/k.Resistance + k.Gain[t])
			if t == 0 {
				o.row(false, kept*k.Init+gain-zero, 1.0, T, -step*k.COP[t]/h, q)
			} else {
				o.row(false, kept*zero+gain-zero, 1.0, T, -kept, o.v("hT", t-1, 0, false), -step*k.COP[t]/h, q)
			}

			o.row(true, zero-k.Low[t], -1.0, T, -1.0, under)
			o.row(true, k.High[t]-zero, 1.0, T, -1.0, over)
			o.start("h", t, z, k.StartCost, price)
			price[under] += k.Penalty * h
			price[over] += k.Penalty * h
			balance[t], own[t] = append(balance[t], -1.0, q), append(own[t], -1.0, q)
			if t == n-1 {
				price[T] -= k.Terminal
				constant -= k.Terminal * (zero - k.Reference)
			}
		}
	}

	for t := range n {
		in, out, z := o.v("gi", t, l.GridImportKW*h, false), o.v("ge", t, l.GridExportKW*h, false), o.v("gz", t, 1, true)
		spare := 0.0
		if l.Curtailable {
			spare = l.PV[t]
		}

		o.row(true, 0, 1.0, in, -l.GridImportKW*h, z)
		o.row(true, l.GridExportKW*h, 1.0, out, l.GridExportKW*h, z)
		o.row(false, l.Load[t]-l.PV[t], append(balance[t], 1.0, in, -1.0, out, -1.0, o.v("cut", t, spare, false))...)
		price[in] += l.Import[t]
		price[out] -= l.Export[t]
		if l.NoBatteryToCar {
			for _, z := range charges[t] {
				o.row(true, l.Load[t]+power, append(append(append([]any{}, gives[t]...), own[t]...), power, z)...)
			}
		}
	}

	return o, oracleGoals{shorts, peaks, price, constant}
}

// start counts the starts of z.
func (o *oracle) start(id string, t, z int, cost float64, price map[int]float64) {
	if cost == 0 {
		return
	}
	s := o.v(id+"start", t, 1, false)
	price[s] += cost
	if t == 0 {
		o.row(true, 0, 1.0, z, -1.0, s)
		return
	}
	o.row(true, 0, 1.0, z, -1.0, o.v(id+"z", t-1, 0, true), -1.0, s)
}

// program is the programme with a cost in the format of CPLEX, which other solvers read.
func (o *oracle) program(cost map[int]float64) string {
	var b strings.Builder
	sum := func(terms []oracleTerm) {
		for i, e := range terms {
			if i%20 == 19 {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, " %+.12g x%d", e.value, e.variable)
		}
	}

	b.WriteString("Minimize\n obj:")
	sum(inOrder(cost))
	b.WriteString("\nSubject To\n")
	for i, r := range o.rows {
		fmt.Fprintf(&b, " r%d:", i)
		sum(r.terms)
		relation := "="
		if r.less {
			relation = "<="
		}
		fmt.Fprintf(&b, " %s %.12g\n", relation, r.right)
	}

	b.WriteString("Bounds\n")
	for j, u := range o.upper {
		fmt.Fprintf(&b, " 0 <= x%d <= %.12g\n", j, u)
	}
	b.WriteString("Binary\n")
	for j, is := range o.binary {
		if is {
			fmt.Fprintf(&b, " x%d\n", j)
		}
	}
	b.WriteString("End\n")
	return b.String()
}
