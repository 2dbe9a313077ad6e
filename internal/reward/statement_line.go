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
	return slices.ContainsFunc(l.Periods, func(p Period) bool { return p.Price != nil })
}

// Basis says in words which readings and prices the line stands on.
func (l *Line) Basis() string {
	var devices, sources []string
	for _, p := range l.Periods {
		if id := p.Device.String(); !p.Device.IsZero() && !slices.Contains(devices, id) {
			devices = append(devices, id)
		}

		if p.Source != "" && !slices.Contains(sources, p.Source) {
			sources = append(sources, p.Source)
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
