//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"flexd/internal/flex"
)

// lockDatabase locks a SQLite database for the one process that may serve it: a second one
// would send pushes that the first is sending already. The lock is on a file beside the
// database. It ends with release, or when the process ends in any way.
func lockDatabase(path string) (release func() error, err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim the database: %w", err)
	}

	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, flex.Fail(
			flex.Conflict,
			"another flexd serves %s: SQLite is for one process; stop that one, or use PostgreSQL",
			path,
		)
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("claim the database: %w", err)
	}

	return f.Close, nil
}

// copyOwner gives a file the owner, the group and the mode of another file. If the process may
// not change the owner, it fails and leaves the mode as it was.
func copyOwner(file, other string) error {
	info, err := os.Stat(other)
	if err != nil {
		return err
	}

	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		err = os.Lchown(file, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		return fmt.Errorf(
			"keep the owner and the group of %s, so that flexd can read it; run this as root or as its owner: %w",
			other,
			err,
		)
	}

	return os.Chmod(file, info.Mode().Perm())
}

// isDatabaseLocked reports whether a process has locked the SQLite database by lockDatabase.
// It creates no file.
func isDatabaseLocked(path string) (locked bool, err error) {
	f, err := os.Open(path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // nobody has claimed it yet
	}
	if err != nil {
		return false, fmt.Errorf("see who serves the database: %w", err)
	}

	defer f.Close() // which ends the lock too

	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}

	return false, err
}
