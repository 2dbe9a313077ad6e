//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import "errors"

// lockDatabase claims nothing where files cannot be locked in this way.
func lockDatabase(string) (release func() error, err error) {
	return func() error { return nil }, nil
}

// copyOwner changes nothing where files have no owner and mode of this kind.
func copyOwner(string, string) error { return nil }

// isDatabaseLocked cannot tell where files cannot be locked in this way.
func isDatabaseLocked(string) (locked bool, err error) {
	return false, errors.ErrUnsupported
}
