//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import "errors"

// serveAlone claims nothing where files cannot be locked in this way.
func serveAlone(string) (release func() error, err error) {
	return func() error { return nil }, nil
}

// copyOwner changes nothing where files have no owner and mode of this kind.
func copyOwner(string, string) error { return nil }

// servedAlone cannot tell where files cannot be locked in this way.
func servedAlone(string) (served bool, err error) {
	return false, errors.ErrUnsupported
}
