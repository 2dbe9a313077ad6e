package reading

import (
	"context"
	"regexp"
	"unicode/utf8"

	"flexd/internal/store"
)

// Limits of the records of refused readings.
const (
	reasonsMax  = 20  // of one batch; the others count as one
	labelMax    = 64  // bytes
	exampleMax  = 300 // bytes
	refusedDays = 62  // retention
)

// numbers matches the parts in which two refusals for the same reason differ.
var numbers = regexp.MustCompile(`-?[0-9][0-9TZ:.+\-]*|"[^"]*"`)

// countRefused records which readings were refused, and why, for operators.
func (in *intake) countRefused(ctx context.Context) error {
	var found []store.RefusedReading
	at := map[[2]string]int{}

	for i, v := range in.verdicts {
		if v.Accepted() {
			continue
		}

		g := in.batch[i]
		r := store.RefusedReading{
			Label:  cut(string(g.Label), labelMax),
			Reason: cut(numbers.ReplaceAllString(string(v), "…"), exampleMax),
			Count:  1,
		}

		r.Example, r.AssetID = cut(string(v), exampleMax), g.AssetID
		_, known := at[[2]string{r.Label, r.Reason}]
		if !known && len(found) >= reasonsMax {
			r.Label, r.Reason = "", "further reasons"
		}

		key := [2]string{r.Label, r.Reason}
		if j, known := at[key]; known {
			r.Count += found[j].Count
			found[j] = r
			continue
		}

		at[key] = len(found)
		found = append(found, r)
	}

	if len(found) == 0 {
		return nil
	}

	return in.tx.CountRefused(ctx, found)
}

// cut shortens a text to at most most bytes, at the end of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most]
}
