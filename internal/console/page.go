package console

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
)

//go:embed template/*.html
var templateFiles embed.FS

// pages are the templates by page, each with the layout and the parts.
var pages = func() map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(functions).ParseFS(
		templateFiles,
		"template/layout.html",
		"template/parts.html",
	))

	names, err := fs.Glob(templateFiles, "template/*.html")
	if err != nil {
		panic(err)
	}
	m := map[string]*template.Template{}
	for _, name := range names {
		page := strings.TrimSuffix(path.Base(name), ".html")
		if page == "layout" || page == "parts" {
			continue
		}
		m[page] = template.Must(template.Must(shared.Clone()).ParseFS(templateFiles, name))
	}
	return m
}()

// item is a line of the menu.
type item struct{ Section, Name string }

// menu has the console's sections in order.
var menu = []item{
	{"fleet", "Fleet now"},
	{"past", "Fleet's past"},
	{"alerts", "Alerts"},
	{"assets", "Assets"},
	{"deliveries", "Deliveries"},
	{"prices", "Prices"},
	{"settlement", "Settlement"},
	{"readings", "Readings"},
	{"engine", "Engine"},
	{"ahead", "Forecast"},
	{"offers", "Offers"},
	{"instructions", "Instructions"},
	{"safety", "Safety"},
	{"developer", "Developer"},
	{"audit", "Audit log"},
	{"operators", "Operators"},
}

// menuOf returns the menu. For an operator of some organisations it is without the sections
// that show all.
func menuOf(operator access.Operator) []item {
	if !operator.SomeOrgs {
		return menu
	}

	return slices.DeleteFunc(slices.Clone(menu), func(i item) bool {
		return slices.ContainsFunc(surface, func(rt route) bool {
			return rt.unparted && rt.pattern == "GET "+Root+"/"+i.Section
		})
	})
}

// functions are the functions of templates besides the built-in ones.
var functions = template.FuncMap{
	"daytext":   dayText,
	"static":    staticPath,
	"when":      when,
	"stamp":     stamp,
	"clock":     clock,
	"day":       day,
	"ago":       ago,
	"for":       duration,
	"kw":        kw,
	"kwh":       kwh,
	"price":     price,
	"bareprice": barePrice,
	"pounds":    pounds,
	"number":    func(v float64) string { return decimals(v, 1) },
	"integer":   func(v int) string { return decimals(float64(v), 0) },
	"sentence":  sentence,
	"capital":   capital,
	"pence":     pence,
	"words":     words,
	"measured":  measurand,
	"count":     count,
	"short":     short,
	"dict":      dict,
	"clocktext": clockText,
	"actions":   actChoices,
	"isoday":    func(at time.Time) string { return flex.DayAt(at).String() },
	"minus": func(v *float64) string {
		return strings.Replace(strconv.FormatFloat(*v, 'f', 2, 64), "-", "−", 1)
	},
	"money": func(v float64) string {
		return strconv.FormatFloat(v, 'f', 2, 64)
	},
	"signed":     signedPounds,
	"weekday":    func(d flex.Day) string { return day(d.Start()) },
	"minuspence": func(p flex.Pence) flex.Pence { return -p },
	"date":       date,
	"month":      month,
	"shortday": func(d flex.Day) string {
		return fmt.Sprintf("%d %s", d.Dom, d.Month.String()[:3])
	},
	"micros": func(d time.Duration) string {
		return decimals(float64(d.Nanoseconds())/1000, 1) + "\u00a0µs"
	},
	"rfc3339": func(at time.Time) string {
		return at.UTC().Format(time.RFC3339)
	},
	"whentext": whenText,
	"sub":      func(a, b int) int { return a - b },
	"exactkwh": exactKWh,

	"averagekw": averageKW,
	"attribute": attributeLabel,
	"groupname": groupName,
}

// dict makes the argument of a template's part from names and values.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}

	return m
}

// ofOrg is a page about one organisation: the chosen one, or else the first.
type ofOrg struct {
	Orgs []flex.Org
	Org  flex.OrgID
}

// choose lists the organisations, and chooses the first if none is chosen.
func (p *ofOrg) choose(s *Server, r *request) error {
	var err error
	p.Orgs, err = s.Registry.Orgs(r.Context())
	if len(p.Orgs) > 0 && p.Org.IsZero() {
		p.Org = p.Orgs[0].ID
	}

	return err
}
