package wave

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"unsafe"

	"flexd/internal/engine/random"
	"flexd/internal/flex"
)

// curveCase is a random curve with the pieces that it was sorted from.
type curveCase struct {
	curve  Curve
	pieces []Piece
	giveUp flex.Price
}

func randomCurve(t *testing.T, d *random.Source) *curveCase {
	t.Helper()
	w := &curveCase{giveUp: KeepAll}
	halves := 1 + d.Below(96)
	cuts := 0
	if d.Below(2) == 0 {
		cuts = d.Below(min(6, 97-halves))
	}

	off, price := d.Below(2) == 0, 0
	for h := range halves {
		price = d.Below(40) - 8 // many ties, some negative
		from, end := uint32(h)*1800, uint32(h+1)*1800
		if d.Below(7) == 0 {
			off = !off
		}

		if cuts > 0 && d.Below(3) == 0 {
			cuts--
			at := from + 60*uint32(1+d.Below(29))
			w.pieces = append(w.pieces, Piece{from, at, flex.FromGBPPerMWh(float64(price)), off})
			from, off = at, !off
		}
		w.pieces = append(w.pieces, Piece{from, end, flex.FromGBPPerMWh(float64(price)), off})
	}

	if d.Below(3) == 0 {
		w.giveUp = flex.FromGBPPerMWh(float64(d.Below(40) - 8))
	}
	if err := w.curve.Sort(w.pieces, w.giveUp); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *curveCase) randomCar(d *random.Source) Asset {
	end := int(w.pieces[len(w.pieces)-1].End)
	a := Asset{
		From: uint32(d.Below(end)), Need: uint32(d.Below(end)), Watts: uint32(1400 + d.Below(20000)),
		Flags: uint8(d.Below(4)),
	}
	a.To = a.From + uint32(d.Below(end)) // empty at times, past the horizon at others
	switch d.Below(4) {
	case 0:
		a.From, a.To = a.From/1800*1800, a.To/1800*1800
	case 1:
		a.Need = a.Need / 1800 * 1800
	case 2:
		a.Need = uint32(d.Below(4 * 3600))
	}
	return a
}

// simple plans by listing what each piece can hold and filling it in order.
func (w *curveCase) simple(a Asset) (seconds []uint32, short bool) {
	type room struct {
		piece     int
		tier      int
		price     flex.Price
		available uint32
	}
	var rooms []room
	all, floor := uint32(0), uint32(0)

	for i, p := range w.pieces {
		from, to := max(p.Start, a.From), min(p.End, a.To)
		if from >= to || !p.OffPeak && a.Flags&Peak == 0 {
			continue
		}

		tier := 1
		if p.OffPeak {
			tier = 0
			if p.Price < w.giveUp {
				floor += to - from
			}
		}
		rooms = append(rooms, room{i, tier, p.Price, to - from})
		all += to - from
	}

	need := a.Need
	if a.Flags&Maximise != 0 {
		need = max(need, floor)
	}
	short = need > all
	slices.SortStableFunc(rooms, func(a, b room) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.price, b.price))
	})

	seconds = make([]uint32, len(w.pieces))
	for _, r := range rooms {
		seconds[r.piece] = min(need, r.available)
		need -= seconds[r.piece]
	}
	return seconds, short
}

// spread says what a plan charges in each piece, from its spans alone.
func (w *curveCase) spread(spans []Span) []uint32 {
	seconds := make([]uint32, len(w.pieces))
	for i, p := range w.pieces {
		for _, s := range spans {
			if from, to := max(p.Start, s.From), min(p.End, s.To); from < to {
				seconds[i] += to - from
			}
		}
	}
	return seconds
}

func (w *curveCase) cost(seconds []uint32) (money int64) {
	for i, s := range seconds {
		money += int64(s) * int64(w.pieces[i].Price)
	}
	return money
}

func TestWave_EqualsSimplePlanner(t *testing.T) {
	d := random.Source(1)
	for range 600 {
		w := randomCurve(t, &d)
		for range 50 {
			a := w.randomCar(&d)
			p := w.curve.Plan(&a)
			want, short := w.simple(a)
			spans := w.curve.Spans(&a, p, nil)
			if got := w.spread(spans); !slices.Equal(got, want) || short != (p.Flags()&Short != 0) {
				t.Fatalf("car %+v on %+v\n got %v short %v\nwant %v short %v", a, w.pieces, got, p.Flags(), want, short)
			}

			sum := uint32(0)
			for i, s := range spans {
				if s.From < a.From || s.To > a.To || i > 0 && s.From <= spans[i-1].To {
					t.Fatalf("car %+v: spans %v", a, spans)
				}
				sum += s.To - s.From
			}

			seconds, cost := w.curve.Charge(&a, p)
			if exact := clampedMicros(w.cost(want), a.Watts); seconds != sum || int32(cost) != exact {
				t.Fatalf("car %+v: charge %d s for %d, want %d for %d", a, seconds, cost, sum, exact)
			}
		}
	}
}

// Every minute as a thing of its own: no knowledge of pieces, order or exchange.
func TestWave_CheapestMinutes(t *testing.T) {
	d := random.Source(2)
	for range 300 {
		w := randomCurve(t, &d)
		a := w.randomCar(&d)
		a.From, a.To, a.Need, a.Flags = a.From/60*60, a.To/60*60, a.Need/60*60, a.Flags&Peak
		var minutes [][2]int64

		for _, p := range w.pieces {
			for s := p.Start; s < p.End; s += 60 {
				if s >= a.From && s < a.To && (p.OffPeak || a.Flags != 0) {
					tier := int64(1)
					if p.OffPeak {
						tier = 0
					}
					minutes = append(minutes, [2]int64{tier, int64(p.Price)})
				}
			}
		}

		slices.SortFunc(minutes, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
		money, peak := int64(0), int64(0)
		for _, m := range minutes[:min(len(minutes), int(a.Need/60))] {
			money, peak = money+60*m[1], peak+60*m[0]
		}

		got := w.spread(w.curve.Spans(&a, w.curve.Plan(&a), nil))
		for i, s := range got {
			if !w.pieces[i].OffPeak {
				peak -= int64(s)
			}
		}
		if w.cost(got) != money || peak != 0 {
			t.Fatalf("car %+v: cost %d, best %d, peak off by %d", a, w.cost(got), money, peak)
		}
	}
}

// A plan, some time later and at other prices: what is left of it is what its
// spans hold from then on, the saving is the difference of two costs, and what is wrong
// is said.
func TestWave_Change(t *testing.T) {
	d := random.Source(3)
	seen := map[uint8]int{}
	for range 600 {
		w := randomCurve(t, &d)
		next := *w
		next.pieces = slices.Clone(w.pieces)
		for i := range next.pieces {
			next.pieces[i].Price += flex.FromGBPPerMWh(float64(d.Below(9) - 4))
		}
		if err := next.curve.Sort(next.pieces, w.giveUp); err != nil {
			t.Fatal(err)
		}

		var cars []Asset
		var current []Plan
		var left [][]uint32
		for range 40 {
			a := w.randomCar(&d)
			a.Class = 1
			if d.Below(2) == 0 {
				a.From, a.To = a.From%600, max(a.To, 9000)
			}

			p := w.curve.Plan(&a)
			spans := w.curve.Spans(&a, p, nil)
			a.From += uint32(d.Below(700)) // time passes
			for i := range spans {
				spans[i].From = min(max(spans[i].From, a.From), max(spans[i].To, a.From))
				spans[i].To = max(spans[i].To, a.From)
			}

			gone := w.spread(spans)
			sum := uint32(0)
			for _, s := range gone {
				sum += s
			}
			a.Need = sum // as the service counts it down
			if d.Below(3) == 0 {
				a.Need += uint32(d.Below(4)) * 50
			}
			cars, current, left = append(cars, a), append(current, p), append(left, gone)
		}

		changes := Replan([]Curve{{}, next.curve}, cars, current, nil)
		for i, a := range cars {
			want, _ := next.simple(a)
			at := slices.IndexFunc(changes, func(c Change) bool { return int(c.Asset) == i })
			if at < 0 {
				if !slices.Equal(want, left[i]) {
					t.Fatalf("car %+v: no change, but %v current and %v is best", a, left[i], want)
				}
				continue
			}

			ch := changes[at]
			if got := next.spread(next.curve.Spans(&a, ch.Plan, nil)); !slices.Equal(got, want) {
				t.Fatalf("car %+v: got %v want %v", a, got, want)
			}

			exact := clampedMicros(next.cost(left[i])-next.cost(want), a.Watts)
			if exact != ch.Saving {
				t.Fatalf("car %+v: saving %d, want %d", a, ch.Saving, exact)
			}
			flags := ch.Plan.Flags()
			if (flags&Wrong != 0) != next.wrong(a, left[i], want) {
				t.Fatalf("car %+v: flags %b; current %v, best %v", a, flags, left[i], want)
			}
			seen[flags]++
		}
	}

	for _, f := range []uint8{0, Wrong, Running, Wrong | Running} {
		if seen[f] < 50 {
			t.Errorf("flags %b seen %d times: %v", f, seen[f], seen)
		}
	}
}

func (w *curveCase) wrong(a Asset, current, best []uint32) bool {
	var lack, peak int64
	for i := range current {
		lack += int64(best[i]) - int64(current[i])
		if !w.pieces[i].OffPeak {
			peak += int64(current[i]) - int64(best[i])
			if current[i] > 0 && a.Flags&Peak == 0 {
				return true
			}
		}
	}
	return lack > Slack || peak > Slack
}

func TestWave_Shift(t *testing.T) {
	d := random.Source(4)
	for range 20_000 {
		p := Plan{lo: d.Next(), tag: d.Next() >> 32}
		p.setCut(uint8(d.Below(96)), int16(1+d.Below(1800)))
		n := d.Below(100)
		q := p.Shift(n)

		for i := range MaxPieces {
			want := i+n < MaxPieces && bit(p.lo, p.hi(), uint8(i+n)) == 1
			if (bit(q.lo, q.hi(), uint8(i)) == 1) != want {
				t.Fatalf("%+v shifted by %d is %+v: piece %d", p, n, q, i)
			}
		}
		if int(p.slot()) >= n && (q.slot() != p.slot()-uint8(n) || q.tail() != p.tail()) || int(p.slot()) < n && q.isCut() {
			t.Fatalf("%+v shifted by %d is %+v", p, n, q)
		}
	}
}

func TestWave_Money(t *testing.T) {
	d := random.Source(6)
	for range 10_000 {
		n, watts := int64(d.Next())>>14, uint32(d.Below(50_000))
		want := math.Round(float64(n) * (float64(watts) / 3.6e9))
		if got := micros(n, watts); math.Abs(float64(got)-want) > 1 {
			t.Fatalf("%d at %d W: %d, want %v", n, watts, got, want)
		}
		if k := int64(d.Below(9) - 4); micros(3_600_000_000*k, 1) != k {
			t.Fatal(k)
		}
	}

	if a, b := clampedMicros(1<<60, 60_000), clampedMicros(-1<<60, 60_000); a != math.MaxInt32 || b != math.MinInt32 {
		t.Errorf("%d and %d", a, b)
	}
}

func TestWave_Limits(t *testing.T) {
	var c Curve
	good := make([]Piece, MaxPieces+1)
	for i := range good {
		good[i] = Piece{Start: uint32(i) * 1800, End: uint32(i+1) * 1800}
	}
	if err := c.Sort(good[:MaxPieces], 0); err != nil {
		t.Error(err)
	}

	for name, pieces := range map[string][]Piece{
		"none":              {},
		"too many":          good,
		"late start":        good[1:3],
		"gap":               {good[0], good[2]},
		"over the boundary": {{Start: 0, End: 1801}},
		"backwards":         {{Start: 0, End: 900}, {Start: 900, End: 900}},
	} {
		if err := c.Sort(pieces, 0); flex.KindOf(err) != flex.Malformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := testing.AllocsPerRun(10, func() { _ = c.Sort(good[:MaxPieces], 0) }); n != 0 {
		t.Errorf("Sort: %v allocations", n)
	}
	if a, p, ch := unsafe.Sizeof(Asset{}), unsafe.Sizeof(Plan{}), unsafe.Sizeof(Change{}); a > 24 || p > 16 || a+p+ch > 64 {
		t.Errorf("an asset takes %d + %d + %d bytes", a, p, ch)
	}
}

func sampleFleet(n int) (before, after []Curve, cars []Asset, current []Plan) {
	d := random.Source(7)
	prices := SamplePrices(&d, 48)
	before = SampleCurves(prices)
	for i := range prices {
		prices[i] += flex.FromGBPPerMWh(d.Between(-8, 8))
	}

	after = SampleCurves(prices)
	cars = SampleCars(&d, n)
	current = make([]Plan, n)
	for i := range cars {
		current[i] = before[cars[i].Class].Plan(&cars[i])
	}
	return before, after, cars, current
}

func TestWave_SamePartsSameAnswer(t *testing.T) {
	_, after, cars, current := sampleFleet(5_000)
	whole := Replan(after, cars, current, nil)
	var parts []Change
	for lo := 0; lo < len(cars); lo += 777 {
		hi := min(lo+777, len(cars))
		n := len(parts)
		parts = Replan(after, cars[lo:hi], current[lo:hi], parts)
		for i := n; i < len(parts); i++ {
			parts[i].Asset += uint32(lo)
		}
	}

	if len(whole) == 0 || !slices.Equal(whole, parts) {
		t.Fatalf("%d changes whole, %d in parts", len(whole), len(parts))
	}
	if n := testing.AllocsPerRun(10, func() { Replan(after, cars, current, whole[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWave_Choose(t *testing.T) {
	d := random.Source(5)
	prices := SamplePrices(&d, 48)
	prices[0], prices[1] = 0, 0
	before := SampleCurves(prices)
	for i := range prices {
		prices[i] += flex.FromGBPPerMWh(d.Between(-40, 40))
	}
	prices[0] = flex.FromGBPPerMWh(60)
	after, cars := SampleCurves(prices), SampleCars(&d, 20_000)
	current := make([]Plan, len(cars))

	for i := range cars {
		cars[i].From %= 4000
		current[i] = before[cars[i].Class].Plan(&cars[i])
	}
	changes := Replan(after, cars, current, nil)
	bySaving := map[uint32]Change{}
	for _, ch := range changes {
		bySaving[ch.Asset] = ch
	}
	rule := Rule{Saving: 20_000, Percent: 2, Running: 50_000}
	kept := Choose(rule, after, cars, current, slices.Clone(changes))
	held := 0

	for i, ch := range kept {
		full := bySaving[ch.Asset]
		delete(bySaving, ch.Asset)
		a, c := cars[ch.Asset], &after[cars[ch.Asset].Class]
		_, old := c.Charge(&a, current[ch.Asset])
		seconds, now := c.Charge(&a, ch.Plan)
		if i > 0 && ch.Saving > kept[i-1].Saving {
			t.Fatalf("push %d saves %d, after %d", i, ch.Saving, kept[i-1].Saving)
		}

		if d := int64(old-now) - int64(ch.Saving); d < -1 || d > 1 || ch.Saving > full.Saving {
			t.Fatalf("saving %d, but %d - %d; the best saves %d", ch.Saving, old, now, full.Saving)
		}
		if flex.MicroPounds(ch.Saving) < rule.Saving && ch.Saving*100 < int32(old)*2 {
			t.Fatalf("pushed for %d of %d", ch.Saving, old)
		}

		if want, _ := c.Charge(&a, full.Plan); seconds != want {
			t.Fatalf("charges %d s, not %d", seconds, want)
		}
		if ch.Plan.Flags()&Running != 0 && flex.MicroPounds(ch.Saving) < rule.Running {
			t.Fatalf("touches the running half-hour for %d", ch.Saving)
		}
		if ch.Plan != full.Plan {
			held++
		}
	}

	if held == 0 || len(kept) < 100 {
		t.Errorf("%d kept, %d of them with the running half-hour held", len(kept), held)
	}

	for _, ch := range bySaving { // what was dropped is too small, or would have touched the running half-hour
		_, old := after[cars[ch.Asset].Class].Charge(&cars[ch.Asset], current[ch.Asset])
		if ch.Plan.Flags()&Running == 0 && ch.Saving*100 >= int32(old)*2 && old > 0 && ch.Saving > 0 {
			t.Fatalf("dropped a saving of %d of %d", ch.Saving, old)
		}
	}
}

// A change that begins late is put off, and only such a one.
func TestWave_ChooseAhead(t *testing.T) {
	_, after, cars, current := sampleFleet(5_000)
	changes := Replan(after, cars, current, nil)
	rule := Rule{Saving: 1, Ahead: 16 * 3600}
	kept := map[uint32]bool{}
	for _, ch := range Choose(rule, after, cars, current, slices.Clone(changes)) {
		kept[ch.Asset] = true
	}

	off := 0
	for _, ch := range changes {
		a := &cars[ch.Asset]
		old := after[a.Class].Spans(a, current[ch.Asset], nil)
		now := after[a.Class].Spans(a, ch.Plan, nil)
		begins := uint32(1 << 31)

		for _, w := range slices.Concat(old, now) {
			for _, s := range [2]uint32{w.From, w.To} {
				if at := func(w Span) bool { return w.From <= s && s < w.To }; slices.ContainsFunc(old, at) != slices.ContainsFunc(now, at) {
					begins = min(begins, s)
				}
			}
		}

		if begins = begins / 1800 * 1800; ch.Saving > 0 && kept[ch.Asset] != (begins <= rule.Ahead) {
			t.Fatalf("asset %d: pushed %v, begins at %d", ch.Asset, kept[ch.Asset], begins)
		}
		if begins > rule.Ahead {
			off++
		}
	}
	if off < 100 || len(kept) < 100 {
		t.Errorf("%d put off, %d kept", off, len(kept))
	}
}

func TestWave_ChooseWrongFirst(t *testing.T) {
	_, after, cars, current := sampleFleet(1_000)
	for i := range current {
		if i%10 == 0 {
			current[i] = Plan{} // current idle: wrong for whoever needs anything
		}
	}
	kept := Choose(DefaultRule, after, cars, current, Replan(after, cars, current, nil))
	for i, ch := range kept {
		if wrong := ch.Plan.Flags()&Wrong != 0; wrong != (i < 100) || wrong != (ch.Asset%10 == 0) {
			t.Fatalf("push %d of %d is for asset %d, flags %b", i, len(kept), ch.Asset, ch.Plan.Flags())
		}
	}
}

// A million cars after a price change, with the changes: the figure is ns per wave.
func BenchmarkWave(b *testing.B) {
	_, after, cars, current := sampleFleet(1_000_000)
	changes := make([]Change, 0, len(cars))
	b.ReportAllocs()
	for b.Loop() {
		changes = Replan(after, cars, current, changes[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(cars)), "ns/asset")
	b.ReportMetric(float64(len(changes))/float64(len(cars))*100, "%changed")
}

// The same across 67 half-hours, as when the next day's prices are published.
func BenchmarkWave_Long(b *testing.B) {
	d := random.Source(8)
	curves := SampleCurves(SamplePrices(&d, 67))
	cars := SampleCars(&d, 100_000)
	current := make([]Plan, len(cars))
	changes := make([]Change, 0, len(cars))
	b.ReportAllocs()
	for b.Loop() {
		changes = Replan(curves, cars, current, changes[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(cars)), "ns/asset")
}

func BenchmarkWave_Choose(b *testing.B) {
	_, after, cars, current := sampleFleet(1_000_000)
	changes := Replan(after, cars, current, nil)
	work := make([]Change, len(changes))
	b.ReportAllocs()
	for b.Loop() {
		copy(work, changes)
		Choose(DefaultRule, after, cars, current, work)
	}
}
