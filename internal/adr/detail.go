package adr

import (
	"cmp"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// Where describes the part of a fleet that a scope is.
func Where(s flex.Scope) string {
	var parts []string
	if s.Group != "" {
		parts = append(parts, "the group "+s.Group)
	}
	if s.GSPGroup != "" {
		parts = append(parts, "the GSP group "+s.GSPGroup)
	}

	return cmp.Or(strings.Join(parts, ", "), "the whole fleet")
}

// Detail describes a program's binding, for the audit log.
func Detail(b *flex.ADRBinding) string {
	kind := cmp.Or(b.Kind, flex.ADRInstruction)
	parts := []string{
		string(kind) + " for " + Where(b.Scope),
		"service " + b.Service,
	}

	if b.Price != 0 {
		parts = append(parts, b.Price.Pounds()+"/MWh")
	}
	if len(b.Simple) > 0 {
		parts = append(parts, "kW at levels "+SimpleText(b.Simple))
	}

	return strings.Join(parts, ", ")
}

// SimpleText are the changes in kW at the levels of SIMPLE, with commas between.
func SimpleText(levels []flex.Watts) string {
	var texts []string
	for _, w := range levels {
		texts = append(texts, strconv.FormatFloat(w.KW(), 'f', -1, 64))
	}

	return strings.Join(texts, ", ")
}
