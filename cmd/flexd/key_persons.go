package main

import (
	"context"
	"fmt"

	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

type keyPersons struct {
	store
	form
}

// Help is printed below the command's own line.
func (k *keyPersons) Help() string {
	return "In a database that was created with a key file, personal data is encrypted from the beginning. In others it is in plain text " +
		"until this command is run, once, while no flexd uses the database. If it is interrupted, run it again. Example:\n\n" +
		"  flexd key persons --database sqlite:flexd.db --key-file flexd.db.key"
}

// Run seals the personal data in the database.
func (k *keyPersons) Run(ctx context.Context, c console) error {
	settings, err := k.settings()
	if err != nil {
		return err
	}

	if path, embedded := k.path(); embedded {
		release, err := lockDatabase(path)
		if err != nil {
			return err
		}
		defer func() { _ = release() }()
	}

	n, err := records.SealPersons(ctx, settings.Database, records.Options{
		Environment: settings.Environment,
		Schema:      settings.Schema,
		Keys:        settings.Keys,
		Now:         settings.Now,

		DatabaseClock: settings.DatabaseClock,
	})
	if err != nil {
		return err
	}

	if err := k.note(ctx, n); err != nil {
		return err
	}

	return k.print(
		c,
		fields{"num_sealed": n},
		"%d rows with texts about persons were sealed. Copies made before, and PostgreSQL's archived logs, still have them in plain text.\n",
		n,
	)
}

// note writes to the audit log what was done. It is written afterwards, because until then
// only this program could open the database.
func (k *keyPersons) note(ctx context.Context, n int) error {
	h, err := k.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()

	return h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:    commandLine,
			Act:    "seal texts about persons",
			Detail: fmt.Sprintf("%d rows", n),
		},
		func() error { return nil },
	)
}

// checkPersons checks whether the stored personal data are sealed.
func checkPersons(_ context.Context, h *app.App) ([]symptom, error) {
	if h.DB.PersonsSealed() {
		return []symptom{{
			Part:   "persons",
			Well:   true,
			Detail: "addresses, e-mail addresses and metering points are sealed",
		}}, nil
	}

	return []symptom{{
		Part:   "persons",
		Detail: "addresses, e-mail addresses and metering points lie in plain text",
		Do:     "stop every flexd and run flexd key persons, with --key-file",
	}}, nil
}
