package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// warnOfUnread logs the environment variables of flexd that no flag reads. Otherwise a
// misspelt setting would silently have no effect.
func warnOfUnread(app *kong.Application, environment []string) {
	for _, name := range unread(app, environment) {
		slog.Warn("no flag reads this environment variable, so it has no effect: is it misspelt?", slog.String("name", name))
	}
}

// othersVariables lists prefixes of variables that are not meant for a flag: those of flexd's
// tests, and those that Kubernetes gives every container about a service of the name flexd.
var othersVariables = []string{"FLEXD_TEST_", "FLEXD_SERVICE_", "FLEXD_PORT"}

// unread returns the names that have the prefix of flexd's variables, but that no flag of any
// command reads.
func unread(app *kong.Application, environment []string) []string {
	read := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				read[name] = true
			}
		}

		return next(nil)
	})

	var names []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		isFlexd := strings.HasPrefix(name, "FLEXD_") && !slices.ContainsFunc(othersVariables, func(other string) bool {
			return strings.HasPrefix(name, other)
		})
		if isFlexd && !read[name] {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names
}
