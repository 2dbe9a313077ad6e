package backtest

import (
	"math"

	"flexd/internal/engine/home"
)

// The bound of a home's bill: the linear programme of all days at once, with all loads, prices and stays known, in which
// an element may be on in part. Multipliers of its rows prove a bound, whatever they are (weak duality; see package
// simplex), so they need not come from one solution: each part of the days is solved exactly with two days more before and
// after it, and the multipliers of its own half-hours are kept. What the parts do not agree on at their joints lowers
// the bound and never makes it wrong.

// boundDays is how many days a part has at least, and boundMargin how many half-hours are solved before and after it.
// A part ends where no car is there, but for one that would have more than longestPart half-hours.
const (
	boundDays   = 4
	boundMargin = 96
	longestPart = 10 * 48
)

// entry is a coefficient of a column.
type entry struct {
	row   int
	value float64
}

// column is a variable of the programme, in kWh but for temperatures, with what a unit costs in pence.
type column struct {
	cost, low, high float64
	entries         []entry
	slot            int     // its half-hour
	stored          float64 // kWh of electricity that a unit stands for which is stored
	need            int     // the row of a car's need, -1 if it is not what a car draws
}

// row is an equality of the programme.
type row struct {
	right float64
	slot  int // its half-hour; of a car's need the first of the stay
	// the column that it has in the first basis
	begins int
}

// homeBound is the programme, which grows by half-hours.
type homeBound struct {
	home    *HomeCase
	rows    []row
	columns []column
	free    []bool         // by half-hour: no car is there that was there before
	buy     []float64      // by half-hour
	stores  [3]stateColumn // battery, tank and rooms at the end of the last half-hour
	needs   map[*carStay]int
	// multipliers of the rows
	y []float64
}

// stateColumn is a variable that goes from a half-hour into the next, as parts of it, each with its factor there.
type stateColumn struct {
	columns []int
	factors []float64
}

const (
	batteryStore = iota
	tankStore
	roomStore
)

func (b *homeBound) row(right float64) int {
	b.rows = append(
		b.rows,
		row{right: right, slot: len(b.buy) - 1},
	)
	return len(b.rows) - 1
}

func (b *homeBound) column(
	cost, low, high float64,
	entries ...entry,
) int {
	b.columns = append(b.columns, column{
		cost:    cost,
		low:     low,
		high:    high,
		entries: entries,
		slot:    len(b.buy) - 1,
		need:    -1,
	})

	return len(b.columns) - 1
}

// begin has a row begin with a column in the basis.
func (b *homeBound) begin(row, column int) { b.rows[row].begins = column }

// hold says how much electricity a unit of a store's column stands for.
func (b *homeBound) hold(column int, kWh float64) int {
	b.columns[column].stored = kWh
	return column
}

// carry has a store go on from the last half-hour into a row, or from its beginning.
func (b *homeBound) carry(
	store int,
	to int,
	keeps, start float64,
) {
	last := b.stores[store]
	if last.columns == nil {
		b.rows[to].right += keeps * start
		return
	}

	for i, j := range last.columns {
		b.columns[j].entries = append(
			b.columns[j].entries,
			entry{to, -keeps * last.factors[i]},
		)
	}
}

// append adds a half-hour that was, with the cars that were there.
func (b *homeBound) append(is *homePast, cars []carSlot) {
	b.buy = append(b.buy, is.buy[0])
	load, roof := is.load[0].KWh(), is.roof[0].KWh()
	balance := b.row(load - roof)
	r := boundRows{balance: balance, rule: -1}
	there := false
	free := true
	for _, slot := range cars {
		there = there || slot.stay != nil
		if slot.stay != nil && slot.index > 0 {
			free = false
		}
	}

	b.free = append(b.free, free)
	if there {
		r.rule = b.row(load)
	}

	b.addBattery(r)
	draws := b.addTank(r, is) + b.addRooms(r, is)
	for _, slot := range cars {
		draws += b.addCar(r, slot)
	}

	b.addGrid(r, is, load, roof, draws)
}

// boundRows are rows of a half-hour: the balance at the meter, import less export and less what is drawn, and that
// of the rule that the battery serves no car; -1 where there is none.
type boundRows struct{ balance, rule int }

// entries are those of what draws, or gives, so much of each kWh. What the home uses may come from the battery.
func (r boundRows) entries(
	drawn float64,
	used bool,
	more ...entry,
) []entry {
	list := append(more, entry{r.balance, -drawn})
	if r.rule >= 0 && used {
		list = append(list, entry{r.rule, -drawn})
	}

	return list
}

// addGrid adds import and export. What the battery gives beyond what the home uses is exported or charged again.
func (b *homeBound) addGrid(
	r boundRows,
	is *homePast,
	load, roof, draws float64,
) {
	power := perHalfHour(b.home.Battery.Power).KWh()
	most := max(0, load-roof) + draws + power
	out := roof + power
	lost := 0.0
	if b.home.Fuse > 0 {
		most = min(
			most,
			max(perHalfHour(b.home.Fuse).KWh(), load-roof),
		)
	}

	if b.home.Export != nil {
		limit := perHalfHour(*b.home.Export).KWh()
		lost = max(0, roof-load-limit)
		out = min(out, limit)
	}

	b.begin(
		r.balance,
		b.column(is.buy[0], 0, most, entry{r.balance, 1}),
	)
	export := []entry{{r.balance, -1}}
	if r.rule >= 0 {
		export = append(export, entry{r.rule, -1})
		b.begin(
			r.rule,
			b.column(0, 0, load+draws+out+power, entry{r.rule, 1}),
		)
	}

	b.column(-is.sell[0], 0, out, export...)
	if lost > 0 {
		b.column(0, 0, lost, entry{r.balance, -1})
	}
}

// addBattery adds the battery's half-hour.
func (b *homeBound) addBattery(r boundRows) {
	least, most := b.home.Battery.Usable()
	if most <= least || b.home.Battery.Power <= 0 {
		return
	}

	power := perHalfHour(b.home.Battery.Power).KWh()
	store := b.row(0)
	b.column(
		0,
		0,
		power,
		r.entries(1, true, entry{store, -home.Efficiency})...,
	)
	b.column(
		b.home.Battery.Wear,
		0,
		power,
		r.entries(-1, true, entry{store, 1 / home.Efficiency})...,
	)
	b.carry(batteryStore, store, 1, least.KWh())
	j := b.hold(
		b.column(0, least.KWh(), most.KWh(), entry{store, 1}),
		1,
	)
	b.begin(store, j)
	b.stores[batteryStore] = stateColumn{[]int{j}, []float64{1}}
}

// addTank adds the tank's half-hour, and returns what it can draw. Its level is what is above the bottom of the band,
// less what it lacks of that.
func (b *homeBound) addTank(r boundRows, is *homePast) float64 {
	k := b.home.Tank
	if k == nil {
		return 0
	}

	top, floor := k.levels()
	power := perHalfHour(k.Element).KWh()
	store := b.row(-float64(is.used[0]) / 1000)
	b.column(
		0,
		0,
		power,
		r.entries(1, true, entry{store, -1})...,
	)
	// water that is colder than the mains is not drawn
	b.column(
		ColdPence,
		0,
		float64(is.used[0])/1000,
		entry{store, -1},
	)
	b.carry(tankStore, store, 1, 0)
	up := b.hold(
		b.column(0, 0, float64(top)/1000, entry{store, 1}),
		1,
	)
	b.begin(store, up)
	down := b.column(
		ColdPence,
		0,
		-float64(floor)/1000,
		entry{store, -1},
	)

	b.stores[tankStore] = stateColumn{
		[]int{up, down},
		[]float64{1, -1},
	}

	return power
}

// coldest and hottest bound what a house without need of heat is outside its band, in kelvins.
const coldest, hottest = 40, 40

// addRooms adds the heat pump's half-hour, and returns what it can draw.
func (b *homeBound) addRooms(
	r boundRows,
	is *homePast,
) float64 {
	h := b.home.Heat
	if h == nil {
		return 0
	}

	power := perHalfHour(h.Power).KWh()
	course := h.course(is.outdoor[0])
	temp := b.row(course.idle)
	b.column(
		0,
		0,
		power,
		r.entries(1, true, entry{temp, -1000 * course.perWh})...,
	)
	b.carry(roomStore, temp, course.stays, (h.Low+h.High)/2)
	perKelvin := 1 / (1000 * course.perWh)
	in := b.hold(
		b.column(0, h.Low, h.High, entry{temp, 1}),
		perKelvin,
	)
	over := b.column(
		DiscomfortPence/2,
		0,
		hottest,
		entry{temp, 1},
	)

	under := b.column(
		DiscomfortPence/2,
		0,
		coldest,
		entry{temp, -1},
	)

	b.begin(temp, in)
	b.stores[roomStore] = stateColumn{
		[]int{in, over, under},
		[]float64{1, 1, -1},
	}

	return power
}

// addCar adds a half-hour of a stay, and returns what the car can draw in it.
func (b *homeBound) addCar(r boundRows, slot carSlot) float64 {
	if slot.stay == nil {
		return 0
	}

	if b.needs == nil {
		b.needs = map[*carStay]int{}
	}

	need, begun := b.needs[slot.stay]
	if !begun {
		need = b.row(slot.stay.need.KWh())
		b.needs[slot.stay] = need
		b.begin(
			need,
			b.column(
				MissingPence,
				0,
				slot.stay.need.KWh(),
				entry{need, 1},
			),
		)
	}

	room := slot.rest()[0].KWh()
	j := b.column(
		0,
		0,
		room,
		r.entries(1, false, entry{need, 1})...,
	)
	b.columns[j].need = need

	return room
}

// solve is the bound, in pence. It calls progress after each part, and ends with less of a bound where that is false.
func (b *homeBound) solve(progress func() bool) float64 {
	b.y = make([]float64, len(b.rows))
	for from := 0; from < len(b.buy); {
		to := b.end(from)
		b.part(from, to)
		from = to
		if !progress() {
			break
		}
	}

	return b.proven()
}

// end is where a part that begins at a half-hour ends.
func (b *homeBound) end(from int) int {
	to := min(len(b.buy), from+boundDays*48)
	for to < len(b.buy) && to < from+longestPart && !b.free[to] {
		to++
	}

	return to
}

// part solves the half-hours from one to another with their margins, and keeps the multipliers of their rows.
func (b *homeBound) part(from, to int) {
	p := programme{
		bound: b,
		first: max(0, from-boundMargin),
		end:   min(len(b.buy), to+boundMargin),
	}

	p.build()
	p.solver.Solve(math.Inf(1), 20*p.solver.Columns())
	y := p.solver.Multipliers(p.costs)
	for i, place := range p.place {
		if s := b.rows[i].slot; s >= from && s < to {
			b.y[i] = y[place]
		}
	}
}

// rounding is more than the part by which sums of floating-point numbers are wrong here.
const rounding = 1e-11

// proven is the bound by the multipliers, lowered by what rounding may have added.
func (b *homeBound) proven() float64 {
	pence, size := 0.0, 0.0
	for i, r := range b.rows {
		pence += b.y[i] * r.right
		size += math.Abs(b.y[i] * r.right)
	}

	for i := range b.columns {
		c := &b.columns[i]
		reduced := c.cost
		for _, e := range c.entries {
			reduced -= b.y[e.row] * e.value
		}

		least := min(reduced*c.low, reduced*c.high)
		pence += least
		size += math.Abs(least)
	}

	return pence - rounding*size
}
