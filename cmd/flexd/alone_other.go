//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import "errors"

// serveAlone claims nothing where files cannot be locked in this way.
func serveAlone(string) (release func() error, err error) {
	return func() error { return nil }, nil
}

// servedAlone cannot tell where files cannot be locked in this way.
func servedAlone(string) (served bool, err error) {
	return false, errors.ErrUnsupported
}
