package directory

import (
	"regexp"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// MaxAddress is the longest address, in bytes.
const MaxAddress = 512

// Address is an address taken apart, in large letters and without abbreviations, so that
// two ways of writing one premises come out alike.
type Address struct {
	Postcode Postcode
	// 1, A, 2/1, GROUND, or * for a flat without a name of its own
	flat   string
	number string // of flexd with its letter, 221B, or a range, 223-225
	// the words before the number; without one, those before the street
	building []string
	street   []string // the words after, down to the town
	communal bool     // a landlord's supply for stairs and lifts
}

// ParseAddress takes apart an address in one text, which must hold a postcode and start
// with the number or name of a house. The failure is a flex.Invalid.
func ParseAddress(text string) (Address, error) {
	if len(text) > MaxAddress {
		return Address{}, flex.Fail(
			flex.Invalid,
			"the address is longer than %d characters",
			MaxAddress,
		)
	}

	found := postcodeInText.FindAllString(strings.ToUpper(text), -1)
	if len(found) == 0 {
		return Address{}, flex.Fail(
			flex.Invalid,
			`the address has no postcode; write it as "221B Baker Street, London, NW1 6XE"`,
		)
	}

	p, err := ParsePostcode(found[len(found)-1])
	if err != nil {
		return Address{}, err
	}

	a := NewAddress(text, p)
	if a.number == "" && len(a.building) == 0 {
		return Address{}, flex.Fail(
			flex.Invalid,
			`the address does not start with the number or name of a house; write it as "221B Baker Street, London, NW1 6XE"`,
		)
	}

	return a, nil
}

// postcodeInText finds what could be a postcode in an address.
var postcodeInText = regexp.MustCompile(`\b[A-Z]{1,2}[0-9][A-Z0-9]?\s*[0-9][A-Z]{2}\b`)

// NewAddress takes apart an address whose postcode is known apart. What is beyond
// MaxAddress is not looked at.
func NewAddress(text string, p Postcode) Address {
	if len(text) > MaxAddress {
		text = text[:MaxAddress]
	}

	a := Address{Postcode: p}
	text = postcodeInText.ReplaceAllStringFunc(
		strings.ToUpper(text),
		func(s string) string {
			if found, err := ParsePostcode(s); err == nil && found == p {
				return ","
			}
			return s
		},
	)

	segments := tokenize(text)
	for i := range segments {
		segments[i] = a.takeCommunal(segments[i])
	}

	for i := range segments {
		if a.flat == "" {
			segments[i] = a.takeFlat(segments[i])
		}
	}

	for i := range segments {
		segments[i] = a.takeOutbuilding(segments[i])
	}

	a.takeRest(slices.DeleteFunc(segments, func(words []string) bool {
		return len(words) == 0
	}))

	return a
}

var token = regexp.MustCompile(`[0-9]+[A-Z]?[-/][0-9]+[A-Z]?|[\p{L}\p{N}]+`)

// spelling drops what people write or leave out at will.
var spelling = strings.NewReplacer("'", "", "’", "", ".", "", "&", " AND ")

// tokenize cuts an address in large letters into words, grouped by its commas.
func tokenize(text string) [][]string {
	text = spelling.Replace(text)

	var segments [][]string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return strings.ContainsRune(",;\n\r", r)
	}) {
		words := token.FindAllString(part, -1)
		for i, w := range words {
			if long, ok := abbreviations[w]; ok {
				words[i] = long
			}
		}

		if len(words) > 0 {
			segments = append(segments, words)
		}
	}

	return segments
}

// abbreviations turn what is often written short, or in two ways, into one word. SAINT and
// STREET become the one ST that both are abbreviated to.
var abbreviations = map[string]string{
	"STREET":     "ST",
	"SAINT":      "ST",
	"STR":        "ST",
	"RD":         "ROAD",
	"AVE":        "AVENUE",
	"AV":         "AVENUE",
	"LN":         "LANE",
	"CL":         "CLOSE",
	"CRES":       "CRESCENT",
	"CT":         "COURT",
	"CRT":        "COURT",
	"DR":         "DRIVE",
	"DRV":        "DRIVE",
	"GDNS":       "GARDENS",
	"GDN":        "GARDENS",
	"GRN":        "GREEN",
	"GR":         "GROVE",
	"GRV":        "GROVE",
	"HSE":        "HOUSE",
	"PDE":        "PARADE",
	"PK":         "PARK",
	"PL":         "PLACE",
	"SQ":         "SQUARE",
	"TER":        "TERRACE",
	"TERR":       "TERRACE",
	"TCE":        "TERRACE",
	"WK":         "WALK",
	"MT":         "MOUNT",
	"BLDG":       "BUILDING",
	"BLDGS":      "BUILDINGS",
	"COTT":       "COTTAGE",
	"COTTS":      "COTTAGES",
	"APT":        "FLAT",
	"APARTMENT":  "FLAT",
	"UNIT":       "FLAT",
	"MAISONETTE": "FLAT",
	"FLT":        "FLAT",
	"STUDIO":     "FLAT",
	"ROOM":       "FLAT",
	"BSMT":       "BASEMENT",
	"GRD":        "GROUND",
	"1ST":        "FIRST",
	"2ND":        "SECOND",
	"3RD":        "THIRD",
	"4TH":        "FOURTH",
	"GFF":        "GROUND-FLAT",
	"FFF":        "FIRST-FLAT",
	"SFF":        "SECOND-FLAT",
	"TFF":        "TOP-FLAT",
}

// takeCommunal notes and removes the words for a supply that serves no one flat.
func (a *Address) takeCommunal(words []string) []string {
	for i, w := range words {
		common := w == "COMMON" && i+1 < len(words) &&
			(words[i+1] == "PARTS" || words[i+1] == "AREAS" ||
				words[i+1] == "AREA")
		landlord := w == "LANDLORD" || w == "LANDLORDS"
		if landlord || common || w == "COMMUNAL" {
			a.communal = true
			return nil // nothing else in such a part names the premises
		}
	}

	return words
}

var (
	flatID     = regexp.MustCompile(`^([0-9]+[A-Z]?|[A-Z][0-9]*|[0-9]+[-/][0-9]+)$`)
	slashed    = regexp.MustCompile(`^[0-9]+/[0-9]+$`)
	buildingID = regexp.MustCompile(`^[0-9]+[A-Z]?(-[0-9]+[A-Z]?)?$`)
	oneUpper   = regexp.MustCompile(`^[A-Z]$`)
)

// floorWords name a flat by where it lies.
var floorWords = []string{
	"BASEMENT",
	"GROUND",
	"FIRST",
	"SECOND",
	"THIRD",
	"FOURTH",
	"TOP",
	"UPPER",
	"LOWER",
	"GARDEN",
	"FRONT",
	"REAR",
}

var numberWords = map[string]string{
	"ONE":       "1",
	"TWO":       "2",
	"THREE":     "3",
	"FOUR":      "4",
	"FIVE":      "5",
	"SIX":       "6",
	"SEVEN":     "7",
	"EIGHT":     "8",
	"NINE":      "9",
	"TEN":       "10",
	"ELEVEN":    "11",
	"TWELVE":    "12",
	"THIRTEEN":  "13",
	"FOURTEEN":  "14",
	"FIFTEEN":   "15",
	"SIXTEEN":   "16",
	"SEVENTEEN": "17",
	"EIGHTEEN":  "18",
	"NINETEEN":  "19",
	"TWENTY":    "20",
}

// takeFlat notes and removes the first mention of a flat: FLAT 1, FLAT ONE, FLAT 1 A,
// GROUND FLOOR FLAT, FLAT TOP FLOOR, GFF, PLOT 5, and 2/1 before a number.
func (a *Address) takeFlat(words []string) []string {
	for i, w := range words {
		rest := words[i+1:]
		switch {
		case strings.HasSuffix(w, "-FLAT"):
			a.flat = strings.TrimSuffix(w, "-FLAT")
			return cut(words, i, i+1)

		case slashed.MatchString(w) && i == 0 && (len(rest) == 0 || buildingID.MatchString(rest[0])):
			a.flat = w
			return cut(words, i, i+1)

		case w == "PLOT" && len(rest) > 0 && flatID.MatchString(rest[0]):
			a.flat = "PLOT " + unpad(rest[0])
			return cut(words, i, i+2)

		case slices.Contains(floorWords, w):
			n := 0
			if len(rest) > 0 && rest[0] == "FLOOR" {
				n = 1
			}

			isLast := len(rest) == n+1
			isFlat := len(rest) > n && rest[n] == "FLAT"
			if isFlat && (isLast || !flatID.MatchString(rest[n+1])) {
				a.flat = w
				return cut(words, i, i+2+n)
			}

		case w == "FLAT":
			var used int
			a.flat, used = flatName(rest)

			return cut(words, i, i+1+used)
		}
	}

	return words
}

// outbuildings are dwellings beside a house that bear its number.
var outbuildings = words(`ANNEXE ANNEX OUTBUILDING OUTBUILDINGS GARAGE GARAGES CARAVAN CHALET CABIN SHED WORKSHOP STABLE STABLES`)

// takeOutbuilding notes and removes the mention of a dwelling beside the house: THE ANNEXE, or
// ANNEXE at its end. It is part of what the flat is called, so that it is never taken for the
// house itself. A street that is called so, such as STABLE LANE, is left alone.
func (a *Address) takeOutbuilding(words []string) []string {
	for i, w := range words {
		street := i+1 < len(words) && streetKinds[words[i+1]]
		if !outbuildings[w] || street {
			continue
		}

		if w == "ANNEX" {
			w = "ANNEXE"
		}

		a.flat = strings.TrimSpace(a.flat + " " + w)
		from := i

		if i > 0 && words[i-1] == "THE" {
			from = i - 1
		}

		return cut(words, from, i+1)
	}

	return words
}

// flatName reads what follows the word FLAT and says how many words that took.
func flatName(rest []string) (string, int) {
	switch {
	case len(rest) == 0:
		return "*", 0

	case numberWords[rest[0]] != "":
		return numberWords[rest[0]], 1

	case slices.Contains(floorWords, rest[0]):
		if len(rest) > 1 && rest[1] == "FLOOR" {
			return rest[0], 2
		}

		return rest[0], 1

	case flatID.MatchString(rest[0]):
		if allDigits(rest[0]) && len(rest) > 1 &&
			oneUpper.MatchString(rest[1]) {
			return unpad(rest[0]) + rest[1], 2
		}

		return unpad(rest[0]), 1
	}

	return "*", 0
}

// takeRest finds the number of the house and the words on either side of it. A number such as
// 1/10 is kept as it is written: it may be flat 1 of number 10, or flat 10 of number 1.
func (a *Address) takeRest(segments [][]string) {
	for s, words := range segments {
		for i, w := range words {
			both := a.flat == "" && slashed.MatchString(w)
			if !both && !buildingID.MatchString(w) {
				continue
			}

			a.number = unpad(w)

			after := words[i+1:]
			if allDigits(w) && len(after) > 0 &&
				oneUpper.MatchString(after[0]) { // 221 B
				a.number += after[0]
				after = after[1:]
			}

			a.building = slices.Concat(
				slices.Concat(segments[:s]...),
				words[:i],
			)

			a.street = slices.Concat(after, slices.Concat(segments[s+1:]...))
			return
		}
	}

	a.building, a.street = splitNames(segments)
}

// splitNames tells the name of a house from its street where no number is between.
// The street is the part that holds a word such as ROAD, with the word before it if the
// part has no comma.
func splitNames(segments [][]string) (building, street []string) {
	for s, words := range segments {
		kind := slices.IndexFunc(words, func(w string) bool {
			return streetKinds[w]
		})
		if kind < 0 {
			continue
		}

		from := 0
		if s == 0 { // ROSE COTTAGE BAKER STREET
			from = max(0, kind-1)
			if from == 1 { // OLD BAKER STREET is a street, not a house called OLD
				from = 0
			}
		}

		return slices.Concat(slices.Concat(segments[:s]...), words[:from]),
			slices.Concat(words[from:], slices.Concat(segments[s+1:]...))
	}

	if len(segments) == 0 {
		return nil, nil
	}

	return segments[0], slices.Concat(segments[1:]...)
}

func cut(words []string, from, to int) []string {
	return slices.Concat(words[:from], words[to:])
}

// unpad drops leading zeros.
func unpad(s string) string {
	t := strings.TrimLeft(s, "0")
	if t != "" && t[0] >= '0' && t[0] <= '9' {
		return t
	}

	return s
}

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}

	return m
}

var (
	// streetKinds end the name of a street.
	streetKinds = words(`ST ROAD AVENUE LANE CLOSE CRESCENT DRIVE GARDENS GREEN GROVE PARADE PLACE SQUARE TERRACE WALK
		WAY HILL MEWS RISE ROW VIEW MOUNT CIRCUS PASSAGE ALLEY BROADWAY EMBANKMENT QUAY WHARF YARD GATE VALE PARK`)
	// buildingKinds end the name of a building, and sometimes of a street.
	buildingKinds = words(`COURT HOUSE COTTAGE COTTAGES FARM LODGE VILLA VILLAS BARN HALL MANOR TOWER TOWERS MANSIONS
		BUILDING BUILDINGS APARTMENTS RECTORY VICARAGE MILL INN COACH GRANGE`)
)

// streetName returns the street's words up to the one that says what kind of street it
// is, or nothing if none does.
func (a Address) streetName() []string {
	for i, w := range a.street {
		isKind := streetKinds[w] || a.number != "" && buildingKinds[w]
		if i > 0 && isKind {
			return a.street[:i+1]
		}
	}

	return nil
}

// Key returns the same text for two ways of writing one premises, for finding it again.
func (a Address) Key() string {
	kind := ""
	if a.communal {
		kind = "COMMUNAL"
	}

	return strings.Join([]string{string(a.Postcode), a.flat, a.number,
		strings.Join(a.building, " "), strings.Join(a.streetName(), " "), kind}, "|")
}
