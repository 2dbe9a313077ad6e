package ocppserver

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// syncFile flushes a file's content, or the names in a folder, to the disk.
var syncFile = (*os.File).Sync

// replaceFile replaces a file by another one. The new content is on the disk before the
// rename, and the rename is on the disk before this returns. So a power cut leaves either the
// old or the new file, complete.
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

// writeSynced writes a file that only its owner may read, and flushes it.
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

// syncFolder flushes the names in a folder to the disk. Windows has no such call, and needs
// none.
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
