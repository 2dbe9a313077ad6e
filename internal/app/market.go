package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/directory"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/registry"
	"flexd/internal/store"
)

// MeterDirectory says where metering points are looked up. Its zero value uses the imported
// ones.
type MeterDirectory struct {
	URL      string // of a company's own service; see directory.Remote
	Header   map[string]string
	ECOESURL string // of the industry's registry, for licensees
	ECOESKey flex.Secret
}

// Names of the sources of prices, as settings and the command line write them.
const sourceNames = "elexon-mid, elexon-mid-stream, elexon-system-price, octopus:REGION or octopus:REGION:PRODUCT with a region from A to P, nordpool-n2ex"

// SourceNamed returns the source of prices with that name.
func SourceNamed(name string, web *market.Web) (market.Source, error) {
	head, rest, _ := strings.Cut(name, ":")
	switch head {
	case "elexon-mid":
		return market.ElexonIndex{Web: web, URL: market.ElexonURL}, nil

	case "elexon-mid-stream":
		return market.ElexonIndex{
			Web:    web,
			URL:    market.ElexonURL,
			Stream: true,
		}, nil

	case "elexon-system-price":
		return market.ElexonSystemPrice{Web: web, URL: market.ElexonURL}, nil

	case "octopus":
		region, product, _ := strings.Cut(rest, ":")
		group := "_" + strings.TrimPrefix(region, "_")
		return market.Octopus{
			Web:      web,
			URL:      market.OctopusURL,
			Product:  product,
			GSPGroup: group,
		}, nil

	case "nordpool-n2ex":
		return market.NordPool{Web: web, URL: market.NordPoolURL}, nil
	}

	return nil, flex.Fail(
		flex.Invalid,
		"there is no source of prices %q; there are %s",
		name,
		sourceNames,
	)
}

// addPriceSources adds sources of prices by their names. A name may occur once.
func (a *App) addPriceSources(names []string, web *market.Web) error {
	for _, name := range names {
		source, err := SourceNamed(name, web)
		if err != nil {
			return err
		}

		same := func(m market.Source) bool { return m.Name() == source.Name() }
		if slices.ContainsFunc(a.Market.Sources, same) {
			return flex.Fail(
				flex.Invalid,
				"--price-source %s: another price source is named %s too, and only the first would be asked: give one of them",
				name,
				source.Name(),
			)
		}

		a.Market.Sources = append(a.Market.Sources, source)
	}

	return nil
}

// openMarket makes the service of prices and the directory of metering points.
func (a *App) openMarket(ctx context.Context, s Settings) error {
	web := &market.Web{Client: egress.New(egress.Options{})}
	a.Market = &market.Service{
		DB:           a.DB,
		Log:          s.Log,
		Invent:       s.InventPrices,
		SharedPrices: s.Home,
	}

	if err := a.addPriceSources(s.PriceSources, web); err != nil {
		return err
	}

	if s.Carbon {
		a.Market.Carbon = &market.Carbon{Web: web, URL: market.CarbonURL}
	}

	source := meterSource(s, cmp.Or(s.Home, a.DB))
	if a.DB.Environment == flex.Sandbox {
		source = directory.Sandbox{Source: source}
		if err := a.stockSandbox(ctx); err != nil {
			return fmt.Errorf("keep the sandbox's meters and models: %w", err)
		}
	}

	if !s.listsKept(source) {
		a.Registry.Meters = source
	}

	a.Directory = directory.New(
		source,
		directory.NewRefs(s.Keys, a.DB.Random()),
		a.DB.Now,
	)

	return nil
}

// listsKept reports whether the answers of the source of metering points are in the own store
// already.
func (s Settings) listsKept(source directory.Source) bool {
	_, listed := source.(directory.Listed)
	return listed && s.Home == nil
}

// stockSandbox stores the sandbox's meters, and those of its models that the operator has not
// imported. Records that exist are not written again: every command opens the store, and one
// that only reads must work where nothing can be written, as on a full disk.
func (a *App) stockSandbox(ctx context.Context) error {
	var meters []flex.Meter

	for _, m := range directory.SandboxMeters() {
		known, err := a.DB.MeterByMPAN(ctx, m.MPAN)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return err
		}

		if known != m {
			meters = append(meters, m)
		}
	}

	var known []flex.Model
	err := a.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		known, err = all.Models(ctx)
		return err
	})
	if err != nil {
		return err
	}

	models := slices.DeleteFunc(registry.SandboxModels(), func(m flex.Model) bool {
		return slices.ContainsFunc(known, func(k flex.Model) bool {
			return strings.EqualFold(k.Name, m.Name)
		})
	})

	if len(meters) == 0 && len(models) == 0 {
		return nil
	}

	return a.DB.WriteAll(ctx, func(all *store.All) error {
		if err := all.PutMeters(ctx, meters); err != nil {
			return err
		}

		return all.PutModels(ctx, models)
	})
}

// meterSource returns where metering points are looked up. A service that the operator
// configured may be on the operator's own network.
func meterSource(s Settings, db *store.DB) directory.Source {
	client := egress.New(egress.Options{Allow: egress.Private})
	var distant directory.Source

	switch {
	case s.Meters.ECOESURL != "":
		distant = directory.ECOES{
			Client: client,
			URL:    s.Meters.ECOESURL,
			Key:    s.Meters.ECOESKey,
		}

	case s.Meters.URL != "":
		distant = directory.Remote{
			Client: client,
			URL:    s.Meters.URL,
			Header: s.Meters.Header,
		}

	default:
		return directory.Listed{Kept: db}
	}

	return directory.NewDistant(distant, db.Now, s.Log)
}

// FetchPrices asks the source of that name for the prices of a span and publishes them.
func (a *App) FetchPrices(
	ctx context.Context,
	source string,
	span flex.Span,
	progress func(done, total time.Duration),
) (market.Report, error) {
	s, err := SourceNamed(
		source,
		&market.Web{Client: egress.New(egress.Options{})},
	)
	if err != nil {
		return market.Report{}, err
	}

	return a.Market.Fetch(ctx, s, span, progress)
}
