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
)

// record is what is kept in one place on a site, as the person whom it is about reads it.
type record struct {
	Title string           `json:"title"`
	Rows  []map[string]any `json:"rows"`
}

// readable gives the kept rows names, and their values units: instants as RFC 3339, energy in
// kWh, power in kW, money in pounds.
func readable(kept map[string][]map[string]any) []record {
	var all []record
	for _, table := range slices.Sorted(maps.Keys(kept)) {
		if len(kept[table]) == 0 {
			continue
		}

		r := record{Title: plainName(table)}
		for _, row := range kept[table] {
			out := map[string]any{}
			for column, value := range row {
				out[plainName(column)] = withUnit(column, value)
			}
			r.Rows = append(r.Rows, out)
		}

		all = append(all, r)
	}

	return all
}

// units are what the ends of columns' names stand for. What has none of these is a number or a
// text as it is.
var units = []struct {
	end  string
	text func(n int64) string
}{
	{"_at", func(n int64) string { return time.UnixMicro(n).UTC().Format(time.RFC3339) }},
	{"_wh", func(n int64) string { return fmt.Sprintf("%.3f kWh", float64(n)/1000) }},
	{"_w", func(n int64) string { return fmt.Sprintf("%.3f kW", float64(n)/1000) }},
	{"_pence", func(n int64) string { return flex.Pence(n).String() }},
}

// withUnit is a value as a person reads it.
func withUnit(column string, value any) any {
	n, whole := value.(int64)
	if !whole {
		return value
	}

	for _, u := range units {
		if strings.HasSuffix(column, u.end) {
			return u.text(n)
		}
	}

	return value
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
