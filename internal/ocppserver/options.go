package ocppserver

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// chargerOptions are a charger's options in a chargers' file. The zero value has none set.
type chargerOptions struct {
	floor  *flex.Watts
	phases int // 1 or 3; 0 is not given

	upstream         string // the platform's address without the charger's id
	upstreamPassword string // empty is the one that the charger sends
	readOnly         bool   // the platform may not command the charger
}

// parseOptions reads key=value pairs.
func parseOptions(fields []string) (chargerOptions, error) {
	var (
		o   chargerOptions
		err error
	)

	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "floor":
			o.floor, err = ParseFloor(value)

		case "phases":
			o.phases, err = parsePhases(value)

		case "upstream":
			o.upstream, err = ParseUpstream(value)

		case "upstream-password":
			o.upstreamPassword = value

		case "upstream-read-only":
			o.readOnly = true

		default:
			err = fmt.Errorf(
				"%q is not known: a line goes on with floor=KW, phases=1 or 3, upstream=URL, upstream-password=P or upstream-read-only",
				f,
			)
		}

		if err != nil {
			return chargerOptions{}, err
		}
	}

	return o, nil
}

// ParseFloor parses a floor in kW, as in 1.4.
func ParseFloor(text string) (*flex.Watts, error) {
	kw, err := strconv.ParseFloat(text, 64)
	if err != nil || !(kw >= 0 && kw <= anyPower/1000) {
		return nil, fmt.Errorf("a floor is a power in kW, not %q", text)
	}

	return new(flex.FromKW(kw)), nil
}

// ParseUpstream parses a platform's address.
func ParseUpstream(text string) (string, error) {
	u, err := url.Parse(text)
	known := err == nil && (u.Scheme == "ws" || u.Scheme == "wss")
	if !known || u.Host == "" {
		return "", fmt.Errorf(
			"a platform's address is ws:// or wss://, not %q",
			text,
		)
	}

	return text, nil
}

func parsePhases(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n != 1 && n != 3 {
		return 0, fmt.Errorf("a charger has 1 or 3 phases, not %q", text)
	}

	return n, nil
}

// optionsOf returns a charger's options: those of its line, else the bridge's own.
func (b *Bridge) optionsOf(id string) chargerOptions {
	var o chargerOptions
	if b.Chargers != nil {
		l, _ := b.Chargers.line(id, b.Now())
		o = l.chargerOptions
	}
	if o.floor == nil {
		o.floor = b.Floor
	}
	if o.upstream == "" {
		o.upstream = b.Upstream
	}

	o.readOnly = o.readOnly || b.UpstreamReadOnly

	return o
}
