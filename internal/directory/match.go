package directory

import (
	"cmp"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// How sure a match must be. The numbers of house and flat always have to be equal; these
// bounds judge the words.
const (
	minScore    = 0.75 // share of the words that the two have in common
	minMargin   = 0.15 // by how much the best premises must lead the second
	flatReading = 0.1  // what reading the leading number as a flat's costs
	// what reading a number such as 10A or 1/10 as a flat's costs: more than minMargin
	otherReading = 0.2
	fuzzyPenalty = 0.1 // what a word with a slip of the pen costs
)

// premisesOf returns a name of the premises that each meter is at, the same for two meters of
// one premises: those with one UPRN, or with one address unless their UPRNs differ.
func premisesOf(meters []flex.Meter, p Postcode) []string {
	// the one UPRN of an address; empty if there are several
	numbered := map[string]string{}
	keys := make([]string, len(meters))

	for i, m := range meters {
		keys[i] = NewAddress(m.Address, p).Key()
		if uprn := NormalUPRN(m.UPRN); uprn != "" {
			if before, is := numbered[keys[i]]; is && before != uprn {
				uprn = ""
			}
			numbered[keys[i]] = uprn
		}
	}

	names := make([]string, len(meters))
	for i, m := range meters {
		names[i] = keys[i]

		uprn := NormalUPRN(m.UPRN)
		if uprn == "" {
			uprn = numbered[keys[i]]
		}

		if uprn != "" {
			names[i] = "UPRN " + uprn
		}
	}

	return names
}

// MaxUPRN is the number of digits that a unique property reference number has at most.
const MaxUPRN = 12

// NormalUPRN returns the number without the zeros before it that some lists write, or nothing
// if the text is none.
func NormalUPRN(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > MaxUPRN || !allDigits(text) {
		return ""
	}

	return strings.TrimLeft(text, "0")
}

// Match returns the one import meter at the address. It is a flex.Unclear if none is
// there, or more than one could be meant: nothing is guessed. The meters of one premises,
// as a home with solar panels has two, count as one; an energised import meter is taken
// before a de-energised one, and a landlord's supply only if it was asked for.
func Match(q Address, meters []flex.Meter) (flex.Meter, error) {
	ranked := rank(q, meters)
	if len(ranked) == 0 {
		return flex.Meter{}, flex.Fail(
			flex.Unclear,
			"no meter in %s matches the address",
			q.Postcode,
		)
	}

	if len(ranked) > 1 && ranked[0].score-ranked[1].score < minMargin {
		return flex.Meter{}, flex.Fail(
			flex.Unclear,
			"%d premises in %s match the address; none was chosen",
			len(ranked),
			q.Postcode,
		)
	}

	return importMeter(ranked[0].meters)
}

// premises are meters at one place, and how well its address matches.
type premises struct {
	score  float64
	meters []flex.Meter
}

// rank returns the premises that can be meant, the best match first.
func rank(q Address, meters []flex.Meter) []*premises {
	found := map[string]*premises{}
	group := premisesOf(meters, q.Postcode)

	for i, m := range meters {
		p, err := ParsePostcode(m.Postcode)
		if err != nil || p != q.Postcode {
			continue
		}

		c := NewAddress(m.Address, p)
		score, ok := compare(q, c)
		if !ok {
			continue
		}

		if found[group[i]] == nil {
			found[group[i]] = &premises{}
		}

		at := found[group[i]]
		at.score = max(at.score, score)
		at.meters = append(at.meters, m)
	}

	var ranked []*premises
	for _, p := range found {
		ranked = append(ranked, p)
	}

	slices.SortFunc(ranked, func(a, b *premises) int {
		return cmp.Compare(b.score, a.score)
	})

	return ranked
}

// importMeter returns the one meter of a premises that flexibility can be measured at.
func importMeter(meters []flex.Meter) (flex.Meter, error) {
	imports := slices.DeleteFunc(slices.Clone(meters), func(m flex.Meter) bool {
		return !m.Import
	})
	live := slices.DeleteFunc(slices.Clone(imports), func(m flex.Meter) bool {
		return !m.Energised
	})
	if len(live) > 0 {
		imports = live
	}

	switch len(imports) {
	case 0:
		return flex.Meter{}, flex.Fail(
			flex.Unclear,
			"the premises has an export meter alone",
		)
	case 1:
		return imports[0], nil
	}

	return flex.Meter{}, flex.Fail(
		flex.Unclear,
		"the premises has %d import meters; none was chosen",
		len(imports),
	)
}

// compare returns how alike the words of an address that was asked for and of a
// candidate are, and whether the two can be the same premises at all.
func compare(q, c Address) (float64, bool) {
	if q.communal != c.communal {
		return 0, false
	}

	score, ok := compareReading(q, c)

	// "1 Holmes Court" may mean flat 1 of the building.
	flat := q.asFlat()
	if len(flat.building) > 0 && len(c.building) > 0 &&
		covers(c.building, flat.building) == 1 {
		s, can := compareReading(flat, c)
		if can && (!ok || s-flatReading > score) {
			return s - flatReading, true
		}
	}

	if ok {
		return score, true
	}

	// "10A" may mean flat A of number 10, and "1/10" flat 1 of number 10. Where the list has the
	// number itself, or both readings, that leads or there is no margin.
	best, found := 0.0, false

	for _, pair := range otherReadings(q, c) {
		s, can := compareReading(pair[0], pair[1])
		if can && s-otherReading > best {
			best, found = s-otherReading, true
		}
	}

	return best, found
}

// otherReadings returns the pairs in which one of the two addresses is read another way.
func otherReadings(q, c Address) [][2]Address {
	var pairs [][2]Address
	for _, other := range q.readings() {
		pairs = append(pairs, [2]Address{other, c})
	}
	for _, other := range c.readings() {
		pairs = append(pairs, [2]Address{q, other})
	}

	return pairs
}

// readings returns what else the number of the house may mean.
func (a Address) readings() []Address {
	if a.flat != "" || a.number == "" {
		return nil
	}

	read := func(flat, number string) Address {
		other := a
		other.flat, other.number = unpad(flat), unpad(number)
		return other
	}

	if first, second, both := strings.Cut(a.number, "/"); both {
		return []Address{read(first, second), read(second, first)}
	}

	house := digits(a.number)
	letter := strings.TrimPrefix(a.number, house)
	if !oneUpper.MatchString(letter) {
		return nil
	}

	return []Address{read(letter, house)}
}

// asFlat reads the leading number as a flat's and what follows it afresh.
func (a Address) asFlat() Address {
	if a.flat != "" || a.number == "" || len(a.building) > 0 {
		return Address{}
	}
	b := Address{Postcode: a.Postcode, flat: a.number}
	b.takeRest([][]string{a.street})

	return b
}

func compareReading(q, c Address) (float64, bool) {
	if q.flat != c.flat {
		return 0, false
	}

	switch {
	case q.number != "" && c.number != "":
		if q.number != c.number {
			return 0, false
		}

		if len(q.building) > 0 && len(c.building) > 0 &&
			max(
				covers(q.building, c.building),
				covers(c.building, q.building),
			) < minScore {
			return 0, false
		}

	case q.number != "": // "Rose Cottage, 5 Mill Lane" for ROSE COTTAGE, MILL LANE
		if !sameName(q.building, c.building) {
			return 0, false
		}

	default:
		if len(c.building) == 0 ||
			covers(c.building, q.names()) < 1-fuzzyPenalty {
			return 0, false
		}

		if covers(q.building, c.names()) < 1-fuzzyPenalty {
			return 0, false
		}
	}

	a, b := q.streetName(), c.streetName()
	if len(a) > 0 && len(b) > 0 && !sameName(a, b) {
		return 0, false
	}

	qn, cn := q.names(), c.names()
	if len(qn) > len(cn) {
		qn, cn = cn, qn
	}

	score := covers(qn, cn)

	return score, score >= minScore
}

// names returns all the words.
func (a Address) names() []string { return slices.Concat(a.building, a.street) }

// sameName reports whether two names have the same words, slips of the pen aside.
func sameName(a, b []string) bool {
	return len(a) > 0 && len(b) > 0 && covers(a, b) >= 1-fuzzyPenalty &&
		covers(b, a) >= 1-fuzzyPenalty
}

// covers returns the share of the words of a that b has too; a word with a slip of the
// pen counts for a little less. Nothing is covered by anything.
func covers(a, b []string) float64 {
	if len(a) == 0 {
		return 1
	}

	sum := 0.0
	for _, w := range a {
		best := 0.0
		for _, v := range b {
			if w == v {
				best = 1
				break
			}

			if slipped(w, v) {
				best = 1 - fuzzyPenalty
			}
		}

		sum += best
	}

	return sum / float64(len(a))
}

// slipped reports whether two words differ by a slip of the pen: one letter in a word of
// five or more, two in a word of nine or more, and never in a word with a digit.
func slipped(a, b string) bool {
	ra, rb := []rune(a), []rune(b)
	n := min(len(ra), len(rb))
	allowed := 0

	if n >= 5 {
		allowed = 1
	}

	if n >= 9 {
		allowed = 2
	}

	for _, r := range a + b {
		if r >= '0' && r <= '9' {
			return false
		}
	}

	return allowed > 0 && max(len(ra), len(rb))-n <= allowed &&
		editDistance(ra, rb) <= allowed
}

// editDistance counts the letters to insert, delete, replace or swap with the next.
func editDistance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}

	for j := range b {
		rows[0][j+1] = j + 1
	}

	for i := range a {
		for j := range b {
			d := rows[i][j]
			if a[i] != b[j] {
				d++
			}

			d = min(d, rows[i][j+1]+1, rows[i+1][j]+1)
			swapped := i > 0 && j > 0 && a[i] == b[j-1]
			if swapped && a[i-1] == b[j] {
				d = min(d, rows[i-1][j-1]+1)
			}

			rows[i+1][j+1] = d
		}
	}

	return rows[len(a)][len(b)]
}

// Named reports whether a person who gives part of an address, such as "221", "Flat 1" or
// "Rose Cottage", may mean this one. It is more generous than Match, because the person
// then chooses from a list.
func (a Address) Named(part string) bool {
	p := NewAddress(part, a.Postcode)
	if p.flat != "" && p.flat != a.flat {
		return false
	}
	if p.number != "" && p.number != a.flat &&
		digits(p.number) != digits(a.number) {
		return false
	}

	return covers(p.names(), a.names()) >= 1-fuzzyPenalty
}

// digits returns the digits that a house number starts with.
func digits(s string) string {
	for i, r := range s {
		if r < '0' || r > '9' {
			return s[:i]
		}
	}

	return s
}
