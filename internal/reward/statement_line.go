package reward

import (
	"slices"
	"strings"
)

// Line is the line's cause and note as one text.
func (l *Line) Line() string {
	if l.Note == "" {
		return l.Cause
	}
	return l.Cause + ". " + l.Note
}

// Priced reports whether any half-hour of the line has a price.
func (l *Line) Priced() bool {
	return slices.ContainsFunc(l.Periods, func(p Period) bool {
		return p.Price != nil
	})
}

// priceSource describes the source of the half-hour's price; empty if it has none.
func (p *Period) priceSource() string {
	if p.Source == "" || p.Imported.IsZero() {
		return p.Source
	}
	return p.Source + " (" + string(p.Role) + " price, imported " +
		p.Imported.UTC().Format("2006-01-02 15:04") + " UTC)"
}

// Basis says in words which readings and prices the line is based on.
func (l *Line) Basis() string {
	var devices, sources []string
	for _, p := range l.Periods {
		id := p.Device.String()
		if !p.Device.IsZero() && !slices.Contains(devices, id) {
			devices = append(devices, id)
		}

		source := p.priceSource()
		if source != "" && !slices.Contains(sources, source) {
			sources = append(sources, source)
		}
	}

	text := ""
	if len(devices) > 0 {
		text = "Read by device " + strings.Join(devices, ", ")
		if l.Label != "" {
			text += " as " + strings.ReplaceAll(string(l.Label), "_", " ")
		}
		text += ". "
	}

	if len(sources) > 0 {
		text += "Prices of " + strings.Join(sources, ", ") + "."
	}

	return strings.TrimSpace(text)
}
