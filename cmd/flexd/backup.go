package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

const (
	// backupEveryMin is the shortest time between two copies.
	backupEveryMin = time.Second
	// backupKeep is the number of copies if none is given, and backupKeepMax is the most.
	backupKeep    = 24
	backupKeepMax = 10_000
	// backupPrefix and backupSuffix are around the instant in a copy's name, as backupLayout
	// writes it.
	backupPrefix, backupSuffix = "flexd-", ".db"
	backupLayout               = "20060102T150405.000Z"
	// backupPart is behind the name of a copy that is not whole, or not checked yet.
	backupPart = ".part"
)

// backup is `flexd backup`.
type backup struct {
	store
	form
	File  string        `arg:"" help:"File to write, which must not exist yet; with --every the folder in which the copies are put."`
	Every time.Duration `help:"Make a copy now, and again after each such time, until the command is stopped. Each copy is opened and checked before it gets its name." placeholder:"DURATION"`
	Keep  *int          `help:"With --every: how many copies are kept; the oldest is removed after a newer one was checked; 24 if not given." placeholder:"N"`
}

// Run copies the store while it is in use.
func (b *backup) Run(ctx context.Context, c console) error {
	if err := b.checkEvery(); err != nil {
		return err
	}

	if b.Every > 0 {
		h, err := b.open(ctx)
		if err != nil {
			return err
		}
		defer h.Close()

		return b.repeat(ctx, c, h)
	}

	if err := b.copyAsIs(ctx); err != nil {
		return err
	}

	return b.print(
		c,
		fields{"file": b.File},
		"%s holds a consistent copy; `flexd serve --database sqlite:%s --key-file KEYS` runs on it.\n"+
			"Its secrets are sealed: keep the key file too, and apart from the copy.\n",
		b.File,
		b.File,
	)
}

// copyAsIs copies a database with any schema, because the copy before an upgrade may be made
// by the newer flexd.
func (b *backup) copyAsIs(ctx context.Context) error {
	settings, err := b.settings()
	if err != nil {
		return err
	}

	status, err := records.ReadSchemaStatus(ctx, settings.Database)
	if err != nil {
		return err
	}
	if status.Version == 0 {
		return flex.Fail(flex.NotFound, "the database is empty: there is nothing to copy")
	}

	err = records.CheckEnvironmentAt(ctx, settings.Database, settings.Environment)
	if err != nil {
		return err
	}

	return records.BackupAt(ctx, settings.Database, b.File)
}

// checkEvery refuses an interval at which no copies can be made.
func (b *backup) checkEvery() error {
	if b.Every != 0 && b.Every < backupEveryMin {
		return flex.Fail(
			flex.Invalid,
			"--every is %s: give %s at least",
			b.Every,
			backupEveryMin,
		)
	}
	if b.Keep == nil {
		return nil
	}

	if b.Every == 0 {
		return flex.Fail(
			flex.Invalid,
			"--keep needs --every: without it one copy is made, and none is removed",
		)
	}
	if *b.Keep < 1 || *b.Keep > backupKeepMax {
		return flex.Fail(flex.Invalid, "--keep is %d: give 1 to %d", *b.Keep, backupKeepMax)
	}

	return nil
}

// most returns the greatest number of copies at once.
func (b *backup) most() int {
	if b.Keep == nil {
		return backupKeep
	}

	return *b.Keep
}

// repeat makes copies until it is stopped. The first must succeed. A later one that fails is
// reported and tried again at the next time; until then no older copy is removed.
func (b *backup) repeat(ctx context.Context, c console, h *app.App) error {
	if err := os.MkdirAll(b.File, 0o700); err != nil {
		return err
	}
	if err := b.dropParts(); err != nil {
		return err
	}

	ticker := time.NewTicker(b.Every)
	defer ticker.Stop()

	for first := true; ; first = false {
		file, err := b.copyOnce(ctx, h)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && first {
			return err
		}

		if err != nil {
			fmt.Fprintf(c.err, "flexd: no copy this time: %v\n", err)
		} else if err := b.report(c, file); err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// report prints that a copy was made.
func (b *backup) report(c console, file string) error {
	return b.print(
		c,
		fields{"file": file},
		"%s holds a consistent copy, and its records keep every rule\n",
		file,
	)
}

// copyOnce makes a copy, checks it, gives it its name and removes the oldest ones.
func (b *backup) copyOnce(ctx context.Context, h *app.App) (string, error) {
	name := backupPrefix + clock().UTC().Format(backupLayout) + backupSuffix
	file := filepath.Join(b.File, name)
	part := file + backupPart
	err := h.DB.Backup(ctx, part)
	if err == nil {
		err = b.checkCopy(ctx, part)
	}

	if err == nil {
		err = os.Rename(part, file)
	}
	if err == nil {
		err = syncFolder(b.File)
	}

	if err != nil {
		return "", errors.Join(err, removeCopy(part))
	}

	return file, b.deleteOld(file)
}

// checkCopy opens a copy as flexd does after a restore, and checks it against every rule.
func (b *backup) checkCopy(ctx context.Context, file string) error {
	settings, err := b.settings()
	if err != nil {
		return err
	}

	settings.Database = "sqlite:" + file
	h, err := openChecked(ctx, settings)
	if err != nil {
		return err
	}

	findings, err := h.DB.Verify(ctx)
	h.Close()

	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("the copy breaks a rule: %s", strings.Join(findings, "; "))
	}

	return err
}

// removeCopy removes an incomplete copy and the files that SQLite made beside it.
func removeCopy(part string) error {
	var failed error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Remove(part + suffix)
		if err != nil && !os.IsNotExist(err) {
			failed = errors.Join(failed, err)
		}
	}

	return failed
}

// syncFolder makes the names in a folder durable on the disk. Windows has no such call, and
// does it by itself.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}

	f, err := os.Open(path)
	if err != nil {
		return err
	}

	return errors.Join(f.Sync(), f.Close())
}

// deleteOld removes the oldest copies beyond the number to keep, which includes the newest.
// Their names are in the order of time. Copies with a later time than the newest were named by
// a clock that was ahead: they are ignored, because beside them the newest copy would count as
// the oldest.
func (b *backup) deleteOld(newest string) error {
	copies, err := b.inFolder(backupSuffix)
	if err != nil {
		return err
	}

	at, _ := slices.BinarySearch(copies, newest)
	for _, old := range copies[:max(0, at+1-b.most())] {
		if err := os.Remove(old); err != nil {
			return err
		}
	}

	return nil
}

// inFolder returns the files of copies in the folder whose names end with suffix, sorted.
func (b *backup) inFolder(suffix string) ([]string, error) {
	entries, err := os.ReadDir(b.File)
	if err != nil {
		return nil, err
	}

	var files []string
	for _, e := range entries {
		middle, isBackup := strings.CutPrefix(e.Name(), backupPrefix)
		middle, ends := strings.CutSuffix(middle, suffix)
		_, err := time.Parse(backupLayout, middle)

		if isBackup && ends && err == nil {
			files = append(files, filepath.Join(b.File, e.Name()))
		}
	}

	return files, nil // os.ReadDir sorts
}

// dropParts removes the partial copies of a process that was killed.
func (b *backup) dropParts() error {
	parts, err := b.inFolder(backupSuffix + backupPart)
	for _, part := range parts {
		err = errors.Join(err, removeCopy(part))
	}

	return err
}
