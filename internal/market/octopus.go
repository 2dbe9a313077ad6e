package market

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// OctopusURL is where Octopus Energy's public interface answers. Its prices are fetched
// for one's own use; nothing licenses passing them on.
const OctopusURL = "https://api.octopus.energy/v1"

const (
	octopusPage = 1500 // the most rates that a page may hold
	octopusSpan = 28 * 24 * time.Hour
	// the products whose price changes with each half-hour
	octopusFamily = "AGILE-"
)

// Octopus is the unit rate of a dynamic tariff in a region, without VAT.
type Octopus struct {
	Web *Web
	URL string // OctopusURL
	// the product's code, or empty for the newest of the half-hourly ones
	Product  string
	GSPGroup string // the region, "_A" to "_P"
}

// Name returns the source's name.
func (o Octopus) Name() string { return "octopus" }

// Longest is four weeks, which is one page.
func (o Octopus) Longest() time.Duration { return octopusSpan }

// octopusList is one page of a list.
type octopusList[T any] struct {
	Next    *string
	Results []T
}

// gspGroups are the letters of the grid's supply areas.
const gspGroups = "ABCDEFGHJKLMNP"

// Fetch asks for the rates over the span.
func (o Octopus) Fetch(ctx context.Context, span flex.Span) (Fetched, error) {
	letter, ok := strings.CutPrefix(o.GSPGroup, "_")
	if !ok || len(letter) != 1 || !strings.Contains(gspGroups, letter) {
		return Fetched{}, flex.Fail(
			flex.Invalid,
			`%q is not a region; use a GSP group, "_A" to "_P" without "_I" and "_O"`,
			o.GSPGroup,
		)
	}

	product := o.Product
	if product == "" {
		var err error
		product, err = o.newest(ctx, span.From)
		if err != nil {
			return Fetched{}, err
		}
	}

	q := url.Values{ // a time without Z would be read as London's
		"period_from": {span.From.UTC().Format(minute)},
		"period_to":   {span.To.UTC().Format(minute)},
		"page_size":   {fmt.Sprint(octopusPage)},
	}

	address := fmt.Sprintf(
		"%s/products/%s/electricity-tariffs/E-1R-%s-%s/standard-unit-rates/?%s",
		o.URL,
		url.PathEscape(product),
		url.PathEscape(product),
		letter,
		q.Encode(),
	)

	rates, err := pages[octopusRate](ctx, o.Web, o.URL, address)
	if err != nil {
		return Fetched{}, fmt.Errorf("fetch the rates of %s: %w", product, err)
	}

	return readRates(rates, span), nil
}

// pages follows a list from page to page. It follows no link that leads elsewhere.
func pages[T any](
	ctx context.Context,
	w *Web,
	base, address string,
) ([]T, error) {
	var all []T
	for range MaxPages {
		var page octopusList[T]
		if _, err := w.get(ctx, address, &page); err != nil {
			return nil, err
		}

		all = append(all, page.Results...)
		if page.Next == nil || *page.Next == "" {
			return all, nil
		}
		if !strings.HasPrefix(*page.Next, base+"/") {
			return nil, fmt.Errorf(
				"the next page is said to be elsewhere, at %s",
				host(*page.Next),
			)
		}

		address = *page.Next
	}

	return nil, fmt.Errorf("the list has more than %d pages", MaxPages)
}

type octopusProduct struct {
	Code          string
	Direction     string
	AvailableFrom string  `json:"available_from"`
	AvailableTo   *string `json:"available_to"`
}

// newest returns the code of the half-hourly import product that was the last to come
// out of those on sale at the instant.
func (o Octopus) newest(ctx context.Context, at time.Time) (string, error) {
	q := url.Values{
		"available_at": {at.UTC().Format(minute)},
		"page_size":    {"100"},
	}

	products, err := pages[octopusProduct](
		ctx,
		o.Web,
		o.URL,
		o.URL+"/products/?"+q.Encode(),
	)
	if err != nil {
		return "", fmt.Errorf("list the products: %w", err)
	}

	code, since := "", time.Time{}
	for _, p := range products {
		from, err := instant(p.AvailableFrom)

		export := p.Direction != "" && p.Direction != "IMPORT" ||
			strings.Contains(p.Code, "OUTGOING")
		if err != nil || export || !strings.HasPrefix(p.Code, octopusFamily) {
			continue
		}
		if from.After(at) || from.Before(since) {
			continue
		}

		code, since = p.Code, from
	}

	if code == "" {
		return "", fmt.Errorf(
			"no product whose code starts with %s was on sale at %s",
			octopusFamily,
			at.Format(time.RFC3339),
		)
	}

	return code, nil
}

type octopusRate struct {
	ExcVAT        *float64 `json:"value_exc_vat"`
	From          string   `json:"valid_from"`
	To            *string  `json:"valid_to"`
	PaymentMethod *string  `json:"payment_method"`
}

// readRates turns pence per kilowatt-hour into prices of half-hours. The list comes
// newest first. Times without an offset are London's, and in the hour that comes twice
// their order tells which is which.
func readRates(rates []octopusRate, span flex.Span) Fetched {
	b := newBook(span)
	slices.Reverse(rates)
	last := time.Time{}

	for _, r := range rates {
		if r.ExcVAT == nil ||
			r.PaymentMethod != nil && *r.PaymentMethod == "NON_DIRECT_DEBIT" {
			continue
		}

		from, ok := londonInstant(r.From, last)
		if !ok {
			b.keepOut(unreadable, span.From)
			continue
		}

		last = from
		to := span.To // an open end

		if r.To != nil {
			to, ok = londonInstant(*r.To, from)
			if !ok {
				b.keepOut(unreadable, from)
				continue
			}
		}

		b.addSpan(flex.Span{From: from, To: to}.Meet(span), *r.ExcVAT*10, false)
	}

	return b.fetched()
}

// londonInstant reads a time with an offset, or one of London's clocks without: then of
// the instants that it can mean, the first that comes after last. It is false for a time
// that the clocks skip.
func londonInstant(s string, last time.Time) (time.Time, bool) {
	if at, err := instant(s); err == nil {
		return at, true
	}

	wall, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		return time.Time{}, false
	}

	var meant []time.Time
	for _, offset := range []time.Duration{time.Hour, 0} { // summer time first: it is the earlier
		at := wall.Add(-offset)
		if at.In(flex.London).Format("2006-01-02T15:04:05") == wall.Format("2006-01-02T15:04:05") {
			meant = append(meant, at)
		}
	}

	for _, at := range meant {
		if at.After(last) {
			return at, true
		}
	}

	if len(meant) == 0 {
		return time.Time{}, false
	}

	return meant[len(meant)-1], true
}
