package bankfile

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// entryNameMax is how many characters of a bank's reference of an entry count. ISO 20022 has at most 35.
const entryNameMax = 70

// noReference is what banks write where they have no reference.
var noReference = map[string]bool{
	"":            true,
	"NONREF":      true,
	"NOTPROVIDED": true,
}

// oneLine returns the first characters of a text, without line ends.
func oneLine(text string, most int) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	return string(r[:min(len(r), most)])
}

// day is the day on which the entry was booked, as the bank writes it; empty if it does not.
func (e entry) day() string {
	return oneLine(cmp.Or(e.Booked.Day, e.Booked.Time), len(time.DateOnly))
}

// reference returns the bank's reference of the entry, the same in every statement, or nothing. The entry's own, NtryRef, is none: many
// banks number the entries of each statement by it, and the same entry has another number in the statement of a week than in that of a day.
func (e entry) reference() string {
	servicer := oneLine(e.Servicer, entryNameMax)
	if noReference[servicer] {
		return ""
	}

	return servicer
}

// nameDebits gives each debit of the entry its name. Several of one payment are several debits, in one entry too. Where a bank gives no
// references they are counted by days: the same statement again has the same names.
func (e entry) nameDebits(found []Result, ofDays map[string]int) {
	name, times := e.reference(), map[string]int{}
	if name == "" {
		name = cmp.Or(e.day(), "an unknown day")
		times = ofDays
	}

	for i := range found {
		r := &found[i]
		if r.Outcome != Paid || r.Problem != "" {
			continue
		}

		r.Entry = name
		key := r.Reference + r.Message + " " + name
		times[key]++

		if n := times[key]; n > 1 {
			r.Entry = fmt.Sprintf("%s, debit %d", name, n)
		}
	}
}
