//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package web

// openFiles knows no limit where the system has none of this kind.
func openFiles() (most uint64, limited bool) { return 0, false }
