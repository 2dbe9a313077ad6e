//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package web

import "syscall"

// openFiles returns how many files the process may have open at once.
func openFiles() (most uint64, limited bool) {
	var files syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	return uint64(files.Cur), err == nil //nolint:unconvert // an int64 on FreeBSD
}
