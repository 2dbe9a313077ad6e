package settle

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// Version names this settlement method. It is part of every case's bytes, so that a
// change of method shows as a change of hash.
const Version = "flexd settlement 2"

// Hash identifies the inputs of a case or of a run: SHA-256 over their canonical bytes.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return fmt.Sprintf("%x", h[:]) }

// HashOf returns the hash of canonical bytes.
func HashOf(text []byte) Hash { return sha256.Sum256(text) }

// Hash returns the hash of the case's canonical bytes.
func (c *Case) Hash() Hash { return HashOf(c.AppendText(nil)) }

// AppendText appends the canonical bytes of the case: a line for each fact, in a fixed order,
// with everything that its result depends on and nothing else.
func (c *Case) AppendText(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"%s\nevent %s %s %d-%d %s final=%t\n",
		Version,
		c.Event,
		c.Day,
		c.First,
		c.Last,
		c.Metering,
		c.Final,
	)

	b = c.Rule.appendText(b)
	b = c.Terms.appendText(b)

	for _, n := range c.own() {
		price, known := c.price(n)
		b = append(
			appendValue(append(b, "price"...), int64(price), known),
			'\n',
		)
	}

	b = appendInstructed(b, c.Instructed)
	b = c.appendClaims(b)
	if c.Rule.Method == Nominated {
		return c.appendNominated(b)
	}

	slots := c.slots()
	window := c.Rule.window(c, slots)
	b = appendDay(b, "metered ", c.metered(c.Day), append(c.own(), window...))

	return c.appendHistory(b, append(slots, window...))
}

// appendText appends the terms. Netting by month is said only where it is chosen, so that the
// bytes of a case without it stay as they were before there was a choice.
func (t *Terms) appendText(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"terms share=%d early=%d loss=%d rounding=%s clawback=%t",
		t.Share,
		t.PaidEarly,
		t.LossFactor,
		t.Rounding,
		t.ClawBack,
	)

	if t.ByMonth {
		b = append(b, " crediting=month"...)
	}

	return append(b, '\n')
}

// appendInstructed appends what instructions pay for. Nothing is said where there is none, so that
// the bytes of such a case stay as they were before there were instructions.
func appendInstructed(b []byte, parts []Instructed) []byte {
	for _, p := range parts {
		b = fmt.Appendf(
			b,
			"instructed %d %s seconds=%d price=%d down=%t\n",
			p.Period,
			p.Instruction,
			p.Seconds,
			p.Price,
			p.Down,
		)
	}

	return b
}

// appendNominated appends a baseline that was nominated and what was metered beside it.
func (c *Case) appendNominated(b []byte) []byte {
	own := c.own()
	b = appendDay(b, "nominated ", &c.Nominated, own)
	b = fmt.Appendf(b, "pending %t\n", c.Pending)
	b = appendDay(b, "metered ", c.metered(c.Day), own)

	// At a boundary the nominated plan is above what the home used on other days.
	if c.Metering == Boundary {
		b = c.home().appendHistory(b, c.slots())
	}

	return b
}

// appendHistory appends the days before, as far as they are looked at.
func (c *Case) appendHistory(b []byte, slots []int) []byte {
	before := c.Rule.before(c.Day)

	last := c.Rule.daysLookedBack(c, slots)
	for back := 1; back <= last; back++ {
		d := before.Add(-back)
		if slices.Contains(c.EventDays, d) {
			b = append(appendDate(append(b, "event day "...), d), '\n')
		}

		b = appendDay(b, "history ", c.metered(d), slots)
	}

	return b
}

// appendClaims appends what decides the event's part of the meter's deviation.
func (c *Case) appendClaims(b []byte) []byte {
	if c.Label != "" {
		b = fmt.Appendf(b, "label %s\n", c.Label)
	}

	b = fmt.Appendf(b, "most %d\n", c.Most)
	if len(c.Bounds) > 0 {
		b = fmt.Appendf(b, "bounds %v\n", c.Bounds)
	}

	if len(c.Others) > 0 {
		for _, e := range c.claims() {
			b = fmt.Appendf(
				b,
				"beside %s %d-%d most=%d meant=%d\n",
				e.Event,
				e.First,
				e.Last,
				e.Most,
				e.Meant,
			)

			if len(e.Bounds) > 0 {
				b = fmt.Appendf(b, "bounds %v\n", e.Bounds)
			}
			if e.Event != c.Event {
				b = appendInstructed(b, e.Instructed)
			}
		}
	}

	// of the events beside it too: what those before it earned decides how its own is rounded
	for _, n := range c.own() {
		if slices.ContainsFunc(c.SettledElsewhere, func(a SettledElsewhere) bool {
			return a.Period == n
		}) {
			e, known := c.settledElsewhere(n)
			b = fmt.Appendf(b, "apart %d", n)
			b = append(appendValue(b, int64(e), known), '\n')
		}
	}

	return b
}

func (r *Rule) appendText(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"rule %s working=%d/%d other=%d/%d back=%d inday=%t cap=%d rounding=%s",
		r.Method,
		r.Working.Want,
		r.Working.Least,
		r.NonWorking.Want,
		r.NonWorking.Least,
		r.LookBack,
		r.InDay,
		r.InDayCap,
		r.Rounding,
	)

	if r.Frozen != (flex.Day{}) {
		b = appendDate(append(b, " frozen="...), r.Frozen)
	}

	for _, d := range slices.SortedFunc(slices.Values(r.Holidays), compare) {
		b = appendDate(append(b, " holiday="...), d)
	}

	return append(b, '\n')
}

// appendDay appends a day and the energy of its settlement periods n, "-" where unknown, or
// nothing if none of them is known.
func appendDay(
	b []byte,
	what string,
	m *MeteredDay,
	periods []int,
) []byte {
	if m == nil ||
		!slices.ContainsFunc(periods, func(n int) bool {
			_, known := m.At(n)
			return known
		}) {
		return b
	}

	b = appendDate(append(b, what...), m.Day)
	for _, n := range periods {
		e, known := m.At(n)
		b = appendValue(b, int64(e), known)
	}

	return append(b, '\n')
}

func appendDate(b []byte, d flex.Day) []byte {
	b = append(strconv.AppendInt(b, int64(d.Year), 10), '-')
	b = append(b, byte('0'+d.Month/10), byte('0'+d.Month%10), '-')
	return append(b, byte('0'+d.Dom/10), byte('0'+d.Dom%10))
}

func appendValue(
	b []byte,
	v int64,
	known bool,
) []byte {
	if !known {
		return append(b, " -"...)
	}
	return strconv.AppendInt(append(b, ' '), v, 10)
}

func between(first, last int) []int {
	n := make([]int, 0, last-first+1)
	for i := first; i <= last; i++ {
		n = append(n, i)
	}

	return n
}

// AppendText appends the result as lines that a person can read and two runs can be
// compared by.
func (r *Result) AppendText(b []byte) []byte {
	b = fmt.Appendf(
		b,
		"event %s %s %s\n",
		r.Event,
		r.Day,
		strings.TrimSpace(string(r.Metering)+" "+string(r.Label)),
	)

	for _, f := range r.facts() {
		b = fmt.Appendf(b, "%s %s\n", f.name, f.value)
	}

	return b
}

type fact struct{ name, value string }

// facts lists what a result says, in the order in which it is printed and compared.
func (r *Result) facts() []fact {
	var used, excluded strings.Builder
	for _, d := range r.Used {
		fmt.Fprintf(&used, "%s ", d)
	}

	for _, x := range r.Excluded {
		fmt.Fprintf(&excluded, "%s (%s) ", x.Day, x.Reason)
	}

	all := []fact{
		{"method", string(r.Method)},
		{"quality", string(r.Quality)},
		{"days used", strings.TrimSpace(used.String())},
		{"days left out", strings.TrimSpace(excluded.String())},
		{"adjustment", fmt.Sprintf("%d Wh applied=%t", r.Adjustment, r.Adjusted)},
	}

	for _, s := range r.Periods {
		all = append(all, fact{fmt.Sprintf("period %d", s.Period), s.text()})
	}

	if r.Owed != r.Credit {
		all = append(all, fact{"owed", fmt.Sprintf("%d p", r.Owed)})
	}

	return append(all,
		fact{"missing", strconv.Itoa(r.Missing)},
		fact{"final", strconv.FormatBool(r.Final)},
		fact{"flex", fmt.Sprintf("%d Wh", r.Flex)},
		fact{"gross", fmt.Sprintf("%d millionths of a pound", r.Gross)},
		fact{"credit", fmt.Sprintf("%d p", r.Credit)},
		fact{"kept", fmt.Sprintf("%d p", r.Kept)})
}

// text is a settled period in words. The meter's deviation is said where others have a part in it.
func (s *Settled) text() string {
	if !s.Known {
		return "waits for its reading or price"
	}

	text := fmt.Sprintf(
		"metered %d baseline %d flex %d Wh at %d earns %d",
		s.Metered,
		s.Baseline,
		s.Flex,
		s.Price,
		s.Revenue,
	)

	if s.Flex != s.Metered-s.Baseline {
		text += fmt.Sprintf(
			", of a deviation of %d Wh with %d unassigned",
			s.Deviation,
			s.Unassigned,
		)
	}

	return text
}

// Inputs names the inputs of one event's settlement.
type Inputs struct {
	Event flex.FlexEventID
	Hash  Hash
}

// RunHash returns the hash of a run from the hashes of its cases, in any order. It sorts them.
func RunHash(cases []Inputs) Hash {
	slices.SortFunc(cases, func(a, b Inputs) int {
		return compareID(a.Event, b.Event)
	})
	sum := sha256.New()
	sum.Write([]byte(Version))

	for _, c := range cases {
		sum.Write(c.Event[:])
		sum.Write(c.Hash[:])
	}

	return Hash(sum.Sum(nil))
}

// Change is one difference between two runs in an event. An event that only one of them has
// differs in "event", with an empty side.
type Change struct {
	Event  flex.FlexEventID
	What   string
	Before string
	After  string
}

// Diff lists the changes from one run's results to another's, by event and then in the order
// of a result's lines.
func Diff(before, after []*Result) []Change {
	older, ids := map[flex.FlexEventID]*Result{}, map[flex.FlexEventID]bool{}
	for _, r := range before {
		older[r.Event], ids[r.Event] = r, true
	}

	newer := map[flex.FlexEventID]*Result{}
	for _, r := range after {
		newer[r.Event], ids[r.Event] = r, true
	}

	order := make([]flex.FlexEventID, 0, len(ids))
	for id := range ids {
		order = append(order, id)
	}

	slices.SortFunc(order, func(a, b flex.FlexEventID) int {
		return compareID(a, b)
	})
	var changes []Change

	for _, id := range order {
		changes = append(changes, changeOf(id, older[id], newer[id])...)
	}

	return changes
}

func changeOf(
	id flex.FlexEventID,
	before, after *Result,
) []Change {
	if before == nil {
		return []Change{{id, "event", "", "settled"}}
	}

	if after == nil {
		return []Change{{id, "event", "settled", ""}}
	}

	old := map[string]string{}
	for _, f := range before.facts() {
		old[f.name] = f.value
	}

	var changes []Change
	for _, f := range after.facts() {
		if old[f.name] != f.value {
			changes = append(changes, Change{id, f.name, old[f.name], f.value})
		}
		delete(old, f.name)
	}

	for _, f := range before.facts() {
		if value, removed := old[f.name]; removed {
			changes = append(changes, Change{id, f.name, value, ""})
		}
	}

	return changes
}
