//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

// serveAlone claims nothing where files cannot be locked in this way.
func serveAlone(string) (release func() error, err error) {
	return func() error { return nil }, nil
}
