package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"flexd/internal/flex"
)

// prices is `flexd prices`.
type prices struct {
	Import pricesImport `cmd:"" help:"Import a CSV file of half-hourly prices as one publication."`
	Fetch  pricesFetch  `cmd:"" help:"Ask a market's service for prices and publish what is new."`
	Roles  pricesRoles  `cmd:"" help:"Choose the price sources that an organisation plans with and is settled by, and print the current ones."`
}

type pricesImport struct {
	store
	form
	File      string    `arg:"" help:"CSV with the columns start (RFC 3339, a half-hour) and price_gbp_per_mwh (empty is missing); - reads standard input."`
	Source    string    `help:"Name of the publication; ${default} by default. A name that begins with retail: is a household's rate, which settles nothing; one with imbalance: is known after the half-hour." default:"file" placeholder:"NAME"`
	PublishAt time.Time `help:"From when the prices count as known, RFC 3339; at once if not given." placeholder:"TIME"`
}

// Run imports the prices.
func (p *pricesImport) Run(ctx context.Context, c console) error {
	return p.load(
		ctx,
		c,
		p.form,
		p.File,
		"half-hours",
		func(h importer, r io.Reader) (int, error) {
			return h.ImportPrices(ctx, p.Source, p.PublishAt, r)
		},
	)
}

// meters is `flexd meters`.
type meters struct {
	Import metersImport `cmd:"" help:"Import a CSV file of metering points, all or nothing."`
}

type metersImport struct {
	store
	form
	File string `arg:"" help:"CSV with the columns mpan, direction (import|export), address, postcode, uprn, energised, half_hourly_settled, domestic (true|false), supplier_mpid, supplier_name, gsp_group; - reads standard input."`
}

// Run imports the meters.
func (m *metersImport) Run(ctx context.Context, c console) error {
	return m.load(ctx, c, m.form, m.File, "meters", func(h importer, r io.Reader) (int, error) {
		return h.ImportMeters(ctx, r, func(n int) {
			if n%100_000 == 0 && n > 0 {
				fmt.Fprintf(c.err, "%d meters read\n", n)
			}
		})
	})
}

// models is `flexd models`.
type models struct {
	Import modelsImport `cmd:"" help:"Import a CSV file of asset models, all or nothing."`
}

type modelsImport struct {
	store
	form
	File string `arg:"" help:"CSV with the columns name, type, cop11_qualified (true|false), power_kw, capacity_kwh and, to overrule eligibility, enrol (allow|deny); - reads standard input."`
}

// Run imports the models.
func (m *modelsImport) Run(ctx context.Context, c console) error {
	return m.load(ctx, c, m.form, m.File, "models", func(h importer, r io.Reader) (int, error) {
		return h.ImportModels(ctx, r)
	})
}

// importer is the part of flexd that files go into.
type importer interface {
	ImportPrices(ctx context.Context, source string, publishAt time.Time, r io.Reader) (int, error)
	ImportMeters(ctx context.Context, r io.Reader, progress func(int)) (int, error)
	ImportModels(ctx context.Context, r io.Reader) (int, error)
}

// load opens store and file, imports the file and prints the number of records.
func (s store) load(
	ctx context.Context,
	c console,
	f form,
	file, label string,
	into func(importer, io.Reader) (int, error),
) error {
	r := c.in
	if file != "-" {
		input, err := os.Open(file)
		if err != nil {
			return err
		}

		defer input.Close()
		r = input
	}

	h, err := s.openOrCreate(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	n := 0
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Act:     "import " + label,
			Subject: file,
		},
		func() error {
			var err error
			n, err = into(h, r)
			return err
		},
	)

	if err != nil {
		return fmt.Errorf("%s: %w; nothing was imported", file, err)
	}

	return f.print(
		c,
		fields{"imported": n},
		"imported %s\n",
		flex.Count(n, strings.TrimSuffix(label, "s")),
	)
}
