package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/keyring"
	records "flexd/internal/store"
)

// keyCommand is `flexd key`.
type keyCommand struct {
	New    keyNew    `cmd:"" help:"Make a key file."`
	Rotate keyRotate `cmd:"" help:"Add a new first key to a key file; values that were encrypted under the old keys can still be read."`
	Reseal keyReseal `cmd:"" help:"Encrypt again, with the newest key, all values under older keys, so that the older keys can be removed from the file. With several cells name each with --cell: they use the same file."`

	Persons keyPersons `cmd:"" help:"Encrypt personal data that the database has in plain text, so that it cannot be read in a copy of the database."`
}

type keyNew struct {
	form
	File string `arg:"" help:"File to write; it must not exist yet."`
}

// Run makes a key file.
func (k *keyNew) Run(_ context.Context, c console) error {
	if _, err := os.Stat(k.File); err == nil {
		return flex.Fail(
			flex.Conflict,
			"%s exists already; flexd key rotate puts a new key into it",
			k.File,
		)
	}
	if err := makeKeyFile(k.File); err != nil {
		return err
	}

	return k.print(
		c,
		fields{"file": k.File},
		"%s holds a new key. Name it with --key-file, and keep a copy apart from the database's.\n",
		k.File,
	)
}

type keyRotate struct {
	form
	File string `arg:"" help:"The key file." type:"existingfile"`
}

// Run puts a new key first.
func (k *keyRotate) Run(_ context.Context, c console) error {
	old, err := os.ReadFile(k.File)
	if err != nil {
		return err
	}

	line, err := keyring.NewLine(rand.Reader)
	if err != nil {
		return err
	}

	text := line + string(old)
	ring, err := keyring.ReadRing([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", k.File, err)
	}

	temp, err := writeReplacing(k.File, text)
	if err != nil {
		return err
	}

	// Whoever could read the old file must be able to read the new one: it is often rotated by
	// another user than flexd's.
	err = copyOwner(temp, k.File)
	if err == nil {
		err = os.Rename(temp, k.File)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}

	// A power cut must not take the key away under which values are sealed from now on.
	if err := syncFolder(filepath.Dir(k.File)); err != nil {
		return err
	}

	return k.print(
		c,
		fields{"file": k.File, "key_id": ring.IDs()[0]},
		"%s seals with %v from the next start on. Restart every flexd, then run flexd key reseal.\n",
		k.File,
		ring.IDs()[0],
	)
}

type keyReseal struct {
	cellFlags
	form
}

// Run seals records under older keys again, in each database that is named. On PostgreSQL all
// cells use the same keys.
func (k *keyReseal) Run(ctx context.Context, c console) error {
	names, stores, err := k.stores()
	if err != nil {
		return err
	}

	sum, where := 0, ""
	if len(names) > 1 {
		where = fmt.Sprintf(" in %d databases", len(names))
	}

	for _, name := range names {
		n, err := stores[name].reseal(ctx)
		if err != nil && len(names) > 1 {
			err = fmt.Errorf("cell %s: %w; its secrets need the older keys still", name, err)
		}

		if err != nil {
			return err
		}

		sum += n
	}

	return k.print(
		c,
		fields{"num_sealed": sum},
		"%d secrets were sealed again%s; only the first key of the file is needed now\n",
		sum,
		where,
	)
}

// reseal seals a database's records under older keys again, and returns their number.
func (s store) reseal(ctx context.Context) (int, error) {
	h, err := s.open(ctx)
	if err != nil {
		return 0, err
	}

	defer h.Close()

	var n int
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{Who: commandLine, Act: "reseal secrets"},
		func() error {
			var err error
			n, err = h.DB.Reseal(ctx)
			return err
		},
	)

	return n, err
}

// keys reads the key file: the named one or, on SQLite, the one beside the database, which is
// created with a new database. It returns nil if there is none.
func (s store) keys() (*keyring.Ring, error) {
	file := s.KeyFile
	if file == "" {
		path, embedded := s.path()
		if !embedded {
			return nil, nil
		}

		file = path + ".key"
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Stat(path); err == nil {
				return nil, nil // a new key would not open what is there
			}

			err := makeKeyFile(file)
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf(
					"make a key file beside the new database: %w",
					err,
				)
			}
		}
	}

	ring, err := readKeyFile(file)
	if err == nil {
		ring.ReadAgain(func() (*keyring.Ring, error) { return readKeyFile(file) })
	}

	return ring, err
}

// readKeyFile reads the keys of a file.
func readKeyFile(file string) (*keyring.Ring, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}

	ring, err := keyring.ReadRing(text)
	if err != nil {
		return nil, fmt.Errorf("the key file %s: %w", file, err)
	}

	return ring, nil
}

// makeKeyFile writes a file with one new key, completely or not at all, which only its owner
// can read. It does not change an existing file.
func makeKeyFile(file string) error {
	line, err := keyring.NewLine(rand.Reader)
	if err != nil {
		return err
	}

	temp, err := writeReplacing(
		file,
		"# Keys that seal flexd's secrets, the newest first. Without them these cannot be read again.\n"+
			line,
	)
	if err != nil {
		return err
	}

	return errors.Join(os.Link(temp, file), os.Remove(temp), syncFolder(filepath.Dir(file)))
}

// writeReplacing writes a file that only its owner may read, to be moved to the other's place.
func writeReplacing(file, text string) (string, error) {
	f, err := os.CreateTemp(
		filepath.Dir(file),
		filepath.Base(file)+".*",
	) // 0600
	if err != nil {
		return "", err
	}

	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}

	return f.Name(), nil
}

// checkSecrets reports how many secrets are sealed under which key.
func checkSecrets(ctx context.Context, h *app.App) ([]symptom, error) {
	var s records.Sealing
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		s, err = all.Sealing(ctx)
		return err
	})

	if err != nil {
		return nil, err
	}

	total := 0
	for _, n := range s.Under {
		total += n
	}

	x := symptom{
		Part: "secrets",
		Well: true,
		Detail: fmt.Sprintf(
			"%d sealed, all under the newest key %v",
			total,
			s.Newest,
		),
	}

	switch old := s.Old(); {
	case s.Newest == keyring.ID{}:
		x = symptom{
			Part:   x.Part,
			Detail: fmt.Sprintf("%d sealed, and no key was given", total),
			Do:     "name the key file with --key-file",
		}

	case old > 0:
		x = symptom{
			Part: x.Part,
			Detail: fmt.Sprintf(
				"%d of %d are sealed under older keys than %v",
				old,
				total,
				s.Newest,
			),
			Do: "flexd key reseal, once every flexd has been restarted with the new key",
		}
	}

	return []symptom{x}, nil
}
