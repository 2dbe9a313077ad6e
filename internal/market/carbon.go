package market

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"flexd/internal/flex"
)

// CarbonURL is where the carbon intensity service of the system operator answers. Its
// data are under CC BY 4.0.
const CarbonURL = "https://api.carbonintensity.org.uk"

// Carbon is how much carbon dioxide electricity carries, for Great Britain or for the
// region of a postcode.
type Carbon struct {
	Web     *Web
	URL     string // CarbonURL
	Outward string // the first part of a postcode, or empty for Great Britain
}

// MaxIntensity bounds what is believed, in grams per kilowatt-hour: more than coal alone.
const MaxIntensity = 2000

// Longest is fourteen days.
func (c Carbon) Longest() time.Duration { return 14 * 24 * time.Hour }

type carbonRow struct {
	From      string
	Intensity struct{ Forecast, Actual *float64 }
}

// intensity is what was measured, or the forecast if nothing was. It is nil if there is neither.
func (r carbonRow) intensity() (grams *float64, actual bool) {
	if r.Intensity.Actual != nil {
		return r.Intensity.Actual, true
	}
	return r.Intensity.Forecast, false
}

// address is where the intensity over a span is asked for.
func (c Carbon) address(span flex.Span) string {
	times := url.PathEscape(span.From.UTC().Format(minute)) + "/" +
		url.PathEscape(span.To.UTC().Format(minute))
	if c.Outward == "" {
		return c.URL + "/intensity/" + times
	}

	return c.URL + "/regional/intensity/" + times + "/postcode/" +
		url.PathEscape(c.Outward)
}

// Fetch asks for the intensity over the span. A measured value is taken before a forecast.
func (c Carbon) Fetch(
	ctx context.Context,
	span flex.Span,
) ([]flex.Carbon, error) {
	var a struct{ Data json.RawMessage }
	if _, err := c.Web.get(ctx, c.address(span), &a); err != nil {
		return nil, fmt.Errorf("fetch the carbon intensity: %w", err)
	}

	rows, err := carbonRows(a.Data)
	if err != nil {
		return nil, fmt.Errorf("fetch the carbon intensity: %w", err)
	}

	var out []flex.Carbon
	for _, r := range rows {
		at, err := instant(r.From)
		p := flex.PeriodAt(at)
		asked := err == nil && p.Start().Equal(at) && span.Contains(at)
		if !asked || len(out) > 0 && !out[len(out)-1].Period.Before(p) {
			// the service starts with the half-hour before the one that was asked for
			continue
		}

		grams, actual := r.intensity()
		if grams != nil && *grams >= 0 && *grams <= MaxIntensity {
			out = append(out, flex.Carbon{
				Period: p,
				Grams:  int(*grams + 0.5),
				Actual: actual,
			})
		}
	}

	return out, nil
}

// carbonRows reads the half-hours: a list for the country; for a region an object that
// holds the list, or a list of one such object.
func carbonRows(data json.RawMessage) ([]carbonRow, error) {
	if len(data) == 0 {
		return nil, nil
	}

	type region struct{ Data []carbonRow }

	var one region
	if err := json.Unmarshal(data, &one); err == nil {
		return one.Data, nil
	}

	var many []struct {
		region
		carbonRow
	}

	if err := json.Unmarshal(data, &many); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}

	var rows []carbonRow
	for _, m := range many {
		if m.From != "" {
			rows = append(rows, m.carbonRow)
		}
		rows = append(rows, m.Data...)
	}

	return rows, nil
}
