package main

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

// record has the stored data of one place on a site, in a form that the person whom it
// concerns can read.
type record struct {
	Title string           `json:"title"`
	Rows  []map[string]any `json:"rows"`
}

// readable gives the stored rows readable names, and their values units: instants as RFC 3339,
// energy in kWh, power in kW, money in pounds, readings in the unit of their label.
func readable(stored map[string][]map[string]any) []record {
	var all []record
	for _, table := range slices.Sorted(maps.Keys(stored)) {
		if len(stored[table]) == 0 {
			continue
		}

		r := record{Title: plainName(table)}
		for _, row := range stored[table] {
			out := map[string]any{}
			for column, value := range row {
				out[plainName(column)] = withUnit(table, column, value)
			}

			if value, ok := measured(row); ok {
				out[plainName("value")] = value
			}
			r.Rows = append(r.Rows, out)
		}

		all = append(all, r)
	}

	return all
}

// units has the units for the suffixes of columns' names. A column without such a suffix, and
// not listed below, is a number or a text without a unit.
var units = []struct {
	end  string
	text func(n int64) string
}{
	{"_at", instantText},
	{"_wh", func(n int64) string { return fmt.Sprintf("%.3f kWh", float64(n)/1000) }},
	{"_w", func(n int64) string { return fmt.Sprintf("%.3f kW", float64(n)/1000) }},
}

// ofColumn are the columns of another unit, which their names do not say.
var ofColumn = map[string]func(n int64) string{
	"ready_by_local": func(seconds int64) string {
		return flex.WallTime(time.Duration(seconds) * time.Second).String()
	},
	"ready_by_offset": func(seconds int64) string {
		return time.Time{}.In(time.FixedZone("", int(seconds))).Format("UTC-07:00")
	},
	"took": func(micros int64) string {
		return (time.Duration(micros) * time.Microsecond).String()
	},
}

// instants are the columns of instants whose names end otherwise.
var instants = []string{
	"at", "since", "waiting_since", "code_until", "asked_to", "ready_by", "count_from", "charge_now_from", "charge_now_to",
	"away_from", "away_to", "away_due", "stay_from", "stay_to",
}

// amounts are the columns of money, by their tables: in pence, or in millionths of a pound.
var amounts = map[string]struct{ pence, micro []string }{
	"called_asset": {micro: []string{"cost"}},
	"event_credit": {pence: []string{"gross", "share", "early", "credited", "accrued"}},
	"flex_event":   {micro: []string{"estimated", "final"}},
	"ledger":       {pence: []string{"credit", "others_share", "others_credited", "carried_in", "later_credit"}},
	"pause":        {micro: []string{"saved"}},
	"posting":      {pence: []string{"amount"}},
	"withdrawal":   {pence: []string{"amount"}},
}

func instantText(n int64) string { return time.UnixMicro(n).UTC().Format(time.RFC3339) }

// withUnit is a value as a person reads it.
func withUnit(table, column string, value any) any {
	if text, ok := value.(string); ok && table == "asset_event" && column == "told" {
		return eventText(text)
	}

	n, isInteger := value.(int64)
	if !isInteger {
		return value
	}

	if column == "label" {
		if label, ok := records.LabelNumbered(n); ok {
			name, _ := nameAndUnit(label)
			return name
		}
	}

	switch of := amounts[table]; {
	case slices.Contains(of.pence, column):
		return flex.Pence(n).String()
	case slices.Contains(of.micro, column):
		return fmt.Sprintf("£%.4f", flex.MicroPounds(n).GBP())
	case slices.Contains(instants, column):
		return instantText(n)
	}

	if text := ofColumn[column]; text != nil {
		return text(n)
	}

	for _, u := range units {
		if strings.HasSuffix(column, u.end) {
			return u.text(n)
		}
	}

	return value
}

// measured is the value of a reading in its label's unit, and false if the row is no reading.
func measured(row map[string]any) (string, bool) {
	number, _ := row["label"].(int64)
	value, found := row["value"].(int64)

	label, known := records.LabelNumbered(number)
	if !found || !known {
		return "", false
	}

	_, unit := nameAndUnit(label)

	return fmt.Sprintf("%.3f %s", float64(value)/1e6, unit), true
}

// labelUnits has the units for the suffixes of labels.
var labelUnits = map[string]string{"kwh": "kWh", "kw": "kW", "pct": "%", "c": "°C"}

// nameAndUnit is a label in words, and its unit.
func nameAndUnit(label flex.Label) (string, string) {
	end := strings.LastIndexByte(string(label), '_')
	return plainName(string(label[:end])), labelUnits[string(label[end+1:])]
}

// plainName is a table's or a column's name in words, without its unit.
func plainName(name string) string {
	for _, u := range units[1:] {
		name = strings.TrimSuffix(name, u.end)
	}

	words := strings.ReplaceAll(name, "_", " ")

	return strings.ToUpper(words[:1]) + words[1:]
}

var readablePage = template.Must(template.New("export").Parse(`<!doctype html>
<html lang="en-GB"><meta charset="utf-8"><title>What is kept on site {{.Site}}</title>
<style>body{font:14px/1.4 sans-serif;margin:2rem}table{border-collapse:collapse;margin:.5rem 0 1rem}th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;border-bottom:1px solid #ccc;overflow-wrap:anywhere}@media print{section{break-inside:avoid}}</style>
<h1>What is kept on site {{.Site}}</h1>
<p>Times are in UTC, as year-month-dayThour:minute:secondZ.</p>
{{range .Records}}<section><h2>{{.Title}}</h2>
{{range .Rows}}<table>{{range $name, $value := .}}{{if ne $value nil}}<tr><th scope="row">{{$name}}</th><td>{{$value}}</td></tr>{{end}}{{end}}</table>
{{end}}</section>
{{end}}</html>
`))

// writePage writes the records as a page to be printed.
func writePage(w io.Writer, site flex.SiteID, all []record) error {
	return readablePage.Execute(w, map[string]any{
		"Site":    site.String(),
		"Records": all,
	})
}
