package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"flexd/internal/flex"
	records "flexd/internal/store"
)

// organisation writes the file of a whole organisation.
func (e *export) organisation(ctx context.Context, c console) error {
	if e.Site != "" || e.Format != "machine" {
		return flex.Fail(
			flex.Invalid,
			"give a site, or --organisation alone: an organisation's file has one form",
		)
	}

	h, org, err := ofOrg{e.store, e.Organisation}.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	return h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org.ID,
			Act:     "export organisation",
			Subject: org.Name,
		},
		func() error {
			return h.DB.ReadAll(ctx, func(all *records.All) error {
				file, err := all.ExportOrg(ctx, org.ID, c.out)
				if err == nil {
					fmt.Fprintf(c.err, "%d rows of %d tables\n", file.Rows(), len(file.Tables))
				}
				return err
			})
		},
	)
}

// importCommand is `flexd import`.
type importCommand struct {
	store
	File    string `arg:"" help:"File that flexd export --organisation made." type:"existingfile"`
	Preview bool   `help:"Show what would be imported, and change nothing."`
	JSON    bool   `help:"Print as JSON." name:"json"`
}

// Run imports a whole organisation, or nothing.
func (i *importCommand) Run(ctx context.Context, c console) error {
	// A provider to whom an organisation changes may begin with it.
	open := i.openOrCreate
	if i.Preview {
		open = i.open
	}

	h, err := open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	var file records.PortableFile

	load := func() error {
		var err error
		file, err = h.DB.ImportOrg(
			ctx,
			func() (io.ReadCloser, error) { return os.Open(i.File) },
			i.Preview,
		)
		if err != nil || i.Preview {
			return err
		}

		return h.DB.KeepEnvironment(ctx)
	}

	if i.Preview {
		err = load()
	} else {
		err = h.Access.Act(
			ctx,
			flex.AuditEntry{
				Who:    commandLine,
				Act:    "import organisation",
				Detail: i.File,
			},
			load,
		)
	}

	if err != nil {
		return err
	}

	return i.print(c, file)
}

// print prints the contents of a file.
func (i *importCommand) print(c console, file records.PortableFile) error {
	if i.JSON {
		return c.json(map[string]any{
			"organisation": file.Organisation,
			"name":         file.Name,
			"taken_in":     !i.Preview,
			"rows":         file.Rows(),
			"tables":       file.Tables,
			"lacks":        file.Lacks,
		})
	}

	for _, t := range file.Tables {
		if t.Rows > 0 {
			fmt.Fprintf(c.out, "%-20s %10d\n", t.Table, t.Rows)
		}
	}

	for _, line := range file.Lacks {
		fmt.Fprintln(c.out, "lacks", line)
	}

	if i.Preview {
		fmt.Fprintf(
			c.out,
			"%s can be taken in: %d rows; nothing was changed\n",
			file.Name,
			file.Rows(),
		)

		return nil
	}

	fmt.Fprintf(
		c.out,
		"took in %s: %d rows\n",
		file.Name,
		file.Rows(),
	)

	return nil
}
