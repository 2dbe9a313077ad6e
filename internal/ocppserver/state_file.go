package ocppserver

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// syncFile brings to the disk what was written to a file, or the names in a folder.
var syncFile = (*os.File).Sync

// replaceFile puts a file in the place of another. The new one is on the disk before it has
// the name, and the name is before this returns: a power cut leaves the old one or the new one
// whole.
func replaceFile(path string, b []byte) error {
	next := path + ".new"
	if err := writeSynced(next, b); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}

	return syncFolder(filepath.Dir(path))
}

// writeSynced writes a file that only its owner may read.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	_, err = f.Write(b)
	if err == nil {
		err = syncFile(f)
	}

	return errors.Join(err, f.Close())
}

// syncFolder brings the names in a folder to the disk. Windows has no such call, and does it
// by itself.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}

	f, err := os.Open(path)
	if err != nil {
		return err
	}

	return errors.Join(syncFile(f), f.Close())
}
