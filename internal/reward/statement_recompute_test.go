package reward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/contract"
	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// paper is a statement as somebody reads it who has nothing else: numbers are text.
type paper struct {
	opening, closing string
	lines            []paperLine
	months           []paperMonth
	kwh              []string // sums that the statement itself gives, if any
}

type paperLine struct {
	amount, balance, kwh, rate, share, loss, paid, rounding, carried, due, earlier, earlierKWh string
	month, others, othersCredited, about, kind                                                 string
	passed, event, noted                                                                       bool
	start, err                                                                                 string
	netting                                                                                    paperNetting
	halfHours                                                                                  []paperHalfHour
}

type paperHalfHour struct{ baseline, metered, flex, change, price, source, device, err string }

// paperNetting is how a month stood, at a line or at the statement's end.
type paperNetting struct{ carriedIn, sum, err, certainty, threshold, credit, later string }

type paperMonth struct {
	name, shares, floored, credit, lapsed, carriedOut, carryMonths string
	netting                                                        paperNetting
	events                                                         [][4]string // kWh, share, credit, standard error
}

// readCSV reads a statement's CSV.
func readCSV(t *testing.T, text []byte) (p paper) {
	t.Helper()
	var events [][4]string

	for r, err := range csvfile.Read(bytes.NewReader(text), "row", "amount_pence") {
		if err != nil {
			t.Fatal(err)
		}

		get := func(name string) string { return strings.Clone(r.Get(name)) }
		switch r.Get("row") {
		case "opening":
			p.opening = get("balance_pence")
		case "total":
			p.closing = get("balance_pence")
		case "line":
			p.lines = append(p.lines, paperLine{
				amount: get("amount_pence"), balance: get("balance_pence"), kwh: get("kwh"), rate: get("rate_pence_per_kwh"), share: get("user_share"),
				loss: get("loss_factor"), paid: get("paid_part"), rounding: get("rounding"), carried: get("carried_pence"), due: get("due_pence"),
				earlier: get("earlier_pence"), earlierKWh: get("earlier_kwh"), month: get("month"), others: get("others_pence"),
				othersCredited: get("others_credited_pence"), about: get("flex_event_id") + get("plug_session_id"), kind: get("transaction_type"),
				passed: get("losses_passed_on") == "true", event: get("flex_event_id") != "", start: get("from"), err: get("event_error_pence"),
				netting: paperNetting{get("carried_in_pence"), get("sum_pence"), get("standard_error_pence"), get("certainty"), get("threshold_pence"), get("month_credit_pence"), get("later_pence")},
				noted:   get("rounding") == "" && get("flex_event_id")+get("plug_session_id") != "",
			})
		case "half_hour":
			l := &p.lines[len(p.lines)-1]

			l.halfHours = append(l.halfHours, paperHalfHour{get("baseline_kwh"), get("metered_kwh"), get("half_hour_kwh"), get("change_kwh"),
				get("price_pence_per_kwh"), get("price_source"), get("asset_id"), get("standard_error_kwh")})
		case "month_event":
			events = append(events, [4]string{get("half_hour_kwh"), get("share_pence"), get("credit_pence"), get("event_error_pence")})
		case "month":
			p.months = append(p.months, paperMonth{
				name: get("month"), shares: get("share_pence"), floored: get("floored_pence"), credit: get("credit_pence"), lapsed: get("lapsed_pence"),
				carriedOut: get("carried_out_pence"), carryMonths: get("carry_months"), events: events,
				netting: paperNetting{get("carried_in_pence"), get("sum_pence"), get("standard_error_pence"), get("certainty"), get("threshold_pence"), "", ""},
			})
			events = nil
		}
	}

	return p
}

// node is a value of a JSON document whose numbers are kept as they are written.
type node map[string]any

func (n node) text(name string) string {
	if v := n[name]; v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

func (n node) node(name string) node {
	v, _ := n[name].(map[string]any)
	return v
}

func (n node) list(name string) (all []node) {
	vs, _ := n[name].([]any)
	for _, v := range vs {
		all = append(all, v.(map[string]any))
	}
	return all
}

func (n node) netting() paperNetting {
	return paperNetting{
		n.text("carried_in_pence"), n.text("sum_pence"), n.text("standard_error_pence"), n.text("certainty"), n.text("threshold_pence"),
		n.text("credit_pence"), n.text("later_pence"),
	}
}

// readJSON reads a statement's JSON.
func readJSON(t *testing.T, text []byte) (p paper) {
	t.Helper()
	var n node
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()

	if err := d.Decode(&n); err != nil {
		t.Fatal(err)
	}

	p.opening, p.closing = n.text("opening_balance_pence"), n.text("closing_balance_pence")
	p.kwh = []string{n.node("totals").text("flex_kwh"), n.node("totals").text("creditable_kwh")}

	for _, l := range n.list("lines") {
		c := l.node("calculation")
		m := c.node("month")
		line := paperLine{
			amount: l.text("credit_pence"), balance: l.text("balance_pence"), kwh: l.text("flex_kwh") + l.text("creditable_kwh"),
			rate: l.text("credit_rate_pence_per_kwh"), share: c.text("user_share"), loss: c.text("loss_factor"), paid: c.text("paid_part"),
			rounding: c.text("rounding"), carried: c.text("carried_pence"), due: c.text("due_pence"), earlier: c.text("earlier_pence"),
			earlierKWh: c.text("earlier_kwh"), month: m.text("month"), others: m.text("others_pence"), othersCredited: m.text("others_credited_pence"),
			about: l.text("flex_event_id"), kind: l.text("transaction_type"), passed: c.text("losses_passed_on") == "true", event: l.text("flex_event_id") != "",
			start: l.text("start_time"), err: c.text("standard_error_pence"), netting: m.netting(),
		}
		if !line.event {
			line.about = l.text("plug_session_id")
		}

		line.noted = c == nil && line.about != ""
		for _, h := range l.list("periods") {
			line.halfHours = append(line.halfHours, paperHalfHour{h.text("baseline_kwh"), h.text("metered_kwh"), h.text("flex_kwh"), h.text("change_kwh"),
				h.text("price_pence_per_kwh"), h.text("price_source"), h.text("asset_id"), h.text("standard_error_kwh")})
		}

		p.lines = append(p.lines, line)
	}

	for _, m := range n.list("months") {
		month := paperMonth{name: m.text("month"), shares: m.text("shares_pence"), floored: m.text("floored_pence"), credit: m.text("credit_pence"),
			lapsed: m.text("lapsed_pence"), carriedOut: m.text("carried_out_pence"), carryMonths: m.text("carry_months"), netting: m.netting()}
		for _, e := range m.list("events") {
			month.events = append(month.events, [4]string{e.text("flex_kwh"), e.text("share_pence"), e.text("credited_pence"), e.text("standard_error_pence")})
		}
		p.months = append(p.months, month)
	}

	return p
}

// rat reads a number; none is zero.
func rat(text string) *big.Rat {
	if text == "" {
		return new(big.Rat)
	}

	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("no number: " + text)
	}

	return r
}

func whole(text string) int64 {
	if text == "" {
		return 0
	}

	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}

	return n
}

// rounded rounds to a whole number, half as the statement says.
func rounded(r *big.Rat, mode string) int64 {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // towards minus infinity, for a positive divisor
	rest := new(big.Rat).Sub(r, new(big.Rat).SetInt(floor))
	n := floor.Int64()

	switch order := rest.Cmp(big.NewRat(1, 2)); {
	case order > 0:
		return n + 1
	case order < 0:
		return n
	case mode == "half_even" && n%2 == 0, mode != "half_even" && r.Sign() < 0:
		return n
	}

	return n + 1
}

func times(of ...*big.Rat) *big.Rat {
	product := big.NewRat(1, 1)
	for _, r := range of {
		product.Mul(product, r)
	}
	return product
}

// worked works out what the line's event or session comes to, from its half-hours and terms.
func (l *paperLine) worked() int64 {
	if !l.event {
		return rounded(times(new(big.Rat).Add(rat(l.kwh), rat(l.earlierKWh)), rat(l.rate)), l.rounding)
	}

	worth := new(big.Rat)
	for _, h := range l.halfHours {
		worth.Sub(worth, times(rat(h.flex), rat(h.price)))
	}

	carried := rat(l.carried)
	all := new(big.Rat).Add(worth, carried)
	by := func(paid *big.Rat) int64 {
		return rounded(times(all, rat(l.share), rat(l.loss), paid), l.rounding) - rounded(times(carried, rat(l.share), rat(l.loss), paid), l.rounding)
	}

	early, full := by(rat(l.paid)), by(big.NewRat(1, 1))
	switch {
	case l.month != "":
		return min(early, full)
	case l.passed:
		return early
	}

	return max(0, early)
}

// recompute works out every figure of a statement from the others, and returns what does not
// agree. It shares no code with the program.
func recompute(p paper) (faults []string) {
	fault := func(line int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("line %d: ", line+1)+fmt.Sprintf(format, args...))
	}

	balance := whole(p.opening)
	kwh := map[string]*big.Rat{}
	credited := map[string]int64{}
	months := newOracle(p.months)
	halves := map[string]*big.Rat{}
	energy := [2]*big.Rat{new(big.Rat), new(big.Rat)}

	for i, l := range p.lines {
		balance += whole(l.amount)
		if balance != whole(l.balance) {
			fault(i, "balance %s, not %d", l.balance, balance)
		}

		if l.about == "" {
			continue
		}

		if l.noted {
			fault(i, "nothing to work it out from")
			continue
		}

		if kwh[l.about] == nil {
			kwh[l.about], halves[l.about] = new(big.Rat), new(big.Rat)
		}

		due := l.worked()
		if due != whole(l.due) {
			fault(i, "comes to %s, not %d", l.due, due)
		}

		if whole(l.earlier) != credited[l.about] {
			fault(i, "credited before %s, not %d", l.earlier, credited[l.about])
		}

		if rat(l.earlierKWh).Cmp(kwh[l.about]) != 0 {
			fault(i, "counted before %s kWh, not %s", l.earlierKWh, kwh[l.about].FloatString(3))
		}

		amount := due - whole(l.earlier)
		if l.month != "" {
			var wrong []string
			amount, wrong = months.take(&l, due, credited)
			for _, w := range wrong {
				fault(i, "%s", w)
			}
		}

		if amount != whole(l.amount) {
			fault(i, "is %s, not %d", l.amount, amount)
		}

		credited[l.about] += whole(l.amount)
		kwh[l.about].Add(kwh[l.about], rat(l.kwh))

		sum, change := new(big.Rat), new(big.Rat)

		for _, h := range l.halfHours {
			change.Add(change, rat(h.change))

			if !l.event {
				sum.Add(sum, rat(h.metered))
				continue
			}

			sum.Add(sum, rat(h.flex))

			if alone := new(big.Rat).Sub(rat(h.metered), rat(h.baseline)); h.flex != "" && alone.Cmp(rat(h.flex)) != 0 {
				fault(i, "metered %s less baseline %s is not %s", h.metered, h.baseline, h.flex)
			}

			if h.price != "" && (h.source == "" || h.device == "") {
				fault(i, "a half-hour without the source of its price or its device")
			}
		}

		if sum.Cmp(kwh[l.about]) != 0 {
			fault(i, "half-hours are %s kWh, all lines about it %s", sum.FloatString(3), kwh[l.about].FloatString(3))
		}

		which := 1
		if l.event {
			which = 0
			halves[l.about].Add(halves[l.about], change)
			if halves[l.about].Cmp(kwh[l.about]) != 0 {
				fault(i, "changes of half-hours are %s kWh, all lines about it %s", halves[l.about].FloatString(3), kwh[l.about].FloatString(3))
			}
		}

		energy[which].Add(energy[which], rat(l.kwh))
	}

	if balance != whole(p.closing) {
		faults = append(faults, fmt.Sprintf("closes with %s, not %d", p.closing, balance))
	}

	for i, sum := range p.kwh {
		if rat(sum).Cmp(energy[i]) != 0 {
			faults = append(faults, fmt.Sprintf("sum of kWh %s, not %s", sum, energy[i].FloatString(3)))
		}
	}

	faults = append(faults, months.check(p.months)...)
	return faults
}

// Whoever has a statement alone works out every penny of it again: over both clock changes,
// with late and corrected readings, revised prices, months that close, sessions, goodwill and
// withdrawals; netted by month and not.
func TestStatement_Recomputed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first flex.Day
		terms []string
	}{
		{"spring, by month", flex.Day{Year: 2026, Month: 3, Dom: 5}, []string{"user_share=0.25", "credit_pence_per_kwh=1.5"}},
		{"autumn, by month, paid in part", flex.Day{Year: 2026, Month: 10, Dom: 1}, []string{"user_share=0.375", "credit_pence_per_kwh=0", "paid_early=0.7", "loss_factor=1.043", "rounding=half_even", "certainty=0"}},
		{"autumn, carried for no month, paid in part", flex.Day{Year: 2026, Month: 10, Dom: 1}, []string{"user_share=0.375", "credit_pence_per_kwh=0", "paid_early=0.7", "certainty=0.4", "carry_months=0"}},
		{"spring, carried for a month", flex.Day{Year: 2026, Month: 3, Dom: 5}, []string{"user_share=0.5", "credit_pence_per_kwh=1", "certainty=0.26", "carry_months=1"}},
		{"autumn, by event", flex.Day{Year: 2026, Month: 10, Dom: 1}, []string{"user_share=0.5", "credit_pence_per_kwh=0.75", "crediting=event", "paid_early=0.6"}},
		{"spring, losses passed on", flex.Day{Year: 2026, Month: 3, Dom: 5}, []string{"user_share=0.5", "claw_back=true", "loss_factor=0.97"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each := storetest.EachOf // the first on PostgreSQL too
			if tt.first.Month != time.March {
				each = func(t *testing.T, test func(*testing.T, string)) { test(t, storetest.SQLite(t)) }
			}

			each(t, func(t *testing.T, url string) {
				y := open(t, url)
				y.set(t, append(tt.terms, "min_withdrawal_pence=1")...)
				y.exec(t, `UPDATE asset SET power_w = 7400`)
				q := quarter{fixture: y, t: t, rand: rand.New(rand.NewPCG(3, 5)), metered: map[flex.Period]flex.WattHours{}}

				for n := range 30 { // days to compare with
					d := tt.first.Add(n - 30)
					q.now = d.Start().Add(32 * time.Hour)
					q.tell(flex.Span{From: d.Start().Add(16 * time.Hour), To: d.Start().Add(31 * time.Hour)}, nil)
				}

				for n := range min(nights, 30) {
					d := tt.first.Add(n)
					q.night(d)
					q.rounds()
					q.oddities(d)
				}

				y.now = y.now.AddDate(0, 3, 0)
				q.rounds()
				q.checkStatement(tt.first)
				q.sound(t)
			})
		})
	}
}

// oddities revises prices, gives, and closes months.
func (q *quarter) oddities(d flex.Day) {
	q.now = q.now.Add(time.Hour)
	if q.rand.IntN(3) == 0 {
		from := d.Add(-q.rand.IntN(12))
		q.prices(q.t, flex.Span{From: from.Start().Add(12 * time.Hour), To: from.Start().Add(36 * time.Hour)}, float64(q.rand.IntN(400)-200)+q.rand.Float64())
	}

	if q.rand.IntN(20) == 0 {
		q.write(q.t, func(ctx context.Context, tx *store.Tx) error {
			tr := ledger.Booked{}
			tr.SiteID = q.site
			tr.Kind = ledger.GoodwillCredit
			tr.Key = "goodwill:" + d.String()
			tr.Time, tr.Postings = d.Span(), ledger.Given(flex.Pence(1+q.rand.IntN(90)))
			tr.Cause.By, tr.Cause.Reason = "ada", "=a charger stood still"
			_, err := tx.Post(ctx, &tr)

			return err
		})
	}

	if d.Dom == 20 {
		q.write(q.t, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.CloseMonth(ctx, ledger.MonthOf(d.Add(-25)), "ada")
			return err
		})
	}
}

// checkStatement recomputes the whole as CSV and as JSON, month by month too, and sees that a
// planted fault is found.
func (q *quarter) checkStatement(first flex.Day) {
	t := q.t
	st, err := q.service.Statement(t.Context(), q.org, q.site, first, flex.DayAt(q.now))
	if err != nil {
		t.Fatal(err)
	}

	var b bytes.Buffer
	if err := st.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}

	text, err := json.Marshal(contract.Statement(&st))
	if err != nil {
		t.Fatal(err)
	}

	for name, p := range map[string]paper{"CSV": readCSV(t, b.Bytes()), "JSON": readJSON(t, text)} {
		for i, f := range recompute(p) {
			if i < 20 {
				t.Errorf("%s: %s", name, f)
			}
		}

		if whole(p.closing) != int64(q.balance(t)) {
			t.Errorf("%s closes with %s, and the balance is %d", name, p.closing, q.balance(t))
		}
	}

	if strings.Contains(b.String(), ",=a charger") {
		t.Error("a cell begins a formula")
	}

	q.planted(b.Bytes())
	kinds := map[string]int{}

	for _, l := range readCSV(t, b.Bytes()).lines {
		kinds[l.kind]++
	}

	fmt.Fprintln(t.Output(), len(st.Lines), "lines:", kinds)
	for _, m := range st.Months {
		fmt.Fprintln(t.Output(), m.Note())
	}

	for _, l := range st.Lines {
		if l.Netting != nil && l.Netting.Later != 0 {
			fmt.Fprintln(t.Output(), strings.Join(l.Working, " "))
		}
	}

	if nights < 30 {
		return // under the race detector
	}

	for _, kind := range []ledger.Kind{ledger.FlexEvent, ledger.FlexPeriodTopUp, ledger.Correction, ledger.Withdrawal, ledger.GoodwillCredit} {
		if kinds[string(kind)] == 0 {
			t.Errorf("no line is a %s: nothing is tried", kind)
		}
	}
}

// planted changes one figure at a time, and the change must be found.
func (q *quarter) planted(text []byte) {
	t := q.t
	whole := func(n string) string { return strconv.FormatInt(whole(n)+1, 10) }
	more := func(n string) string { // much more, so that rounding does not hide it
		return new(big.Rat).Add(rat(n), big.NewRat(100, 1)).FloatString(7)
	}

	plants := map[string]func(*paperLine){
		"an amount":           func(l *paperLine) { l.amount = whole(l.amount) },
		"a half-hour's price": func(l *paperLine) { l.halfHours[0].price = more(l.halfHours[0].price) },
		"a half-hour's kWh":   func(l *paperLine) { l.halfHours[0].flex = more(l.halfHours[0].flex) },
		"a metered value":     func(l *paperLine) { l.halfHours[0].metered = more(l.halfHours[0].metered) },
		"a share":             func(l *paperLine) { l.share = more(l.share) },
		"earlier lines":       func(l *paperLine) { l.earlier = whole(l.earlier) },
		"a line's kWh":        func(l *paperLine) { l.kwh = more(l.kwh) },
	}

	if slices.ContainsFunc(readCSV(t, text).lines, func(l paperLine) bool { return l.month != "" }) {
		maps.Copy(plants, map[string]func(*paperLine){
			"a baseline's error": func(l *paperLine) { l.halfHours[0].err = more(l.halfHours[0].err) },
			"an event's error":   func(l *paperLine) { l.err = more(l.err) },
			"a month's error":    func(l *paperLine) { l.netting.err = more(l.netting.err) },
			"a threshold":        func(l *paperLine) { l.netting.threshold = more(l.netting.threshold) },
			"what is carried in": func(l *paperLine) { l.netting.carriedIn = whole(l.netting.carriedIn) },
			"what comes later":   func(l *paperLine) { l.netting.later = whole(l.netting.later) },
		})
	}

	for name, plant := range plants {
		p := readCSV(t, text)
		for i := range p.lines {
			l := &p.lines[i]
			if l.event && len(l.halfHours) > 0 && new(big.Rat).Abs(rat(l.halfHours[0].flex)).Cmp(big.NewRat(1, 10)) > 0 && l.due != "0" {
				plant(l)
				break
			}
		}

		if len(recompute(p)) == 0 {
			t.Errorf("%s was changed, and nobody noticed", name)
		}
	}
}

// A month and a tax year, and what no statement is of.
func TestStatement_Span(t *testing.T) {
	for _, tt := range []struct {
		span     reward.StatementSpan
		from, to string
	}{
		{reward.StatementSpan{Month: "2026-02"}, "2026-02-01", "2026-02-28"},
		{reward.StatementSpan{TaxYear: 2026}, "2026-04-06", "2027-04-05"},
		{reward.StatementSpan{TaxYear: 2023}, "2023-04-06", "2024-04-05"}, // with a leap day, 366 days
	} {
		from, to, err := tt.span.Days()
		if err != nil || from.String() != tt.from || to.String() != tt.to {
			t.Errorf("%+v: %s to %s, %v", tt.span, from, to, err)
		}
	}

	for _, wrong := range []reward.StatementSpan{{Month: "2026-13"}, {Month: "2026-02", TaxYear: 2026}, {TaxYear: 26}, {From: flex.Day{Year: 2026, Month: 1, Dom: 1}, Month: "2026-01"}} {
		if _, _, err := wrong.Days(); flex.KindOf(err) != flex.Malformed {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
