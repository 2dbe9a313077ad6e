package main

import (
	"fmt"
	"io"
	"os"
)

// readFile reads a file for a command, or standard input if its name is -. An error names the
// file.
func readFile[T any](
	file string,
	read func(io.Reader) (T, error),
) (T, error) {
	in := os.Stdin

	var (
		content T
		err     error
	)

	if file != "-" {
		in, err = os.Open(file)
		if err != nil {
			return content, err
		}
		defer in.Close()
	}

	content, err = read(in)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}

	return content, err
}
