// Command figures measures the promises of the README on the machine that it runs on, and prints
// the README's table of them, to be pasted:
//
//	go run ./test/withpg go run ./test/figures             # an hour and a half
//	go run ./test/withpg go run ./test/figures -only wave  # rows whose command has that word
//	go run ./test/figures -list                            # what it would run, for each row
//
// The names of the rows stand here; a test holds the README to them. Figures that were measured
// on another day or machine stay in the README until all rows are measured again.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	only := flag.String(
		"only",
		"",
		"measure only rows whose command contains this",
	)

	list := flag.Bool("list", false, "print the commands, and measure nothing")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *only, *list); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// run prints the table.
func run(ctx context.Context, out io.Writer, only string, list bool) error {
	fmt.Fprint(out, "| promise | figure |\n| --- | --- |\n")
	for _, p := range promises {
		if !strings.Contains(p.command, only) {
			continue
		}
		if list {
			fmt.Fprintf(out, "| %s | `%s` |\n", p.name, p.command)
			continue
		}

		figure, err := p.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(out, "| %s | %s |\n", p.name, figure)
	}

	return nil
}

// measure runs a promise's command and reads its figure.
func (p promise) measure(ctx context.Context) (string, error) {
	var text bytes.Buffer
	c := exec.CommandContext(ctx, "sh", "-c", p.command)
	c.Stdout = &text
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", p.command, err, text.Bytes())
	}

	return p.figure(text.String())
}
