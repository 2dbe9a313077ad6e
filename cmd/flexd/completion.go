package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completion is `flexd completion`.
type completion struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// The scripts that a shell runs. They find the command that was typed so far, and offer the
// words that may follow.
const (
	bashScript = `_flexd() {
	local at="" i w
	for ((i = 1; i < COMP_CWORD; i++)); do
		w="${COMP_WORDS[i]}"
		[[ $'\n'"$(_flexd_next "$at")"$'\n' == *$'\n'"$w"$'\n'* && "$w" != -* ]] && at="$at $w"
	done
	COMPREPLY=($(compgen -W "$(_flexd_next "$at")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _flexd flexd
`
	zshScript = "autoload -Uz bashcompinit && bashcompinit\n"
)

// Run prints a script that has a shell complete flexd's commands and flags.
func (o *completion) Run(ctx context.Context, c console) error {
	parser, err := newParser(ctx, new(commands), c, nil)
	if err != nil {
		return err
	}

	if o.Shell == "fish" {
		return fishScript(c, parser.Model.Node)
	}

	var b strings.Builder
	if o.Shell == "zsh" {
		b.WriteString(zshScript)
	}

	b.WriteString("_flexd_next() {\n\tcase \"$1\" in\n")
	eachNode(parser.Model.Node, func(n *kong.Node) {
		fmt.Fprintf(
			&b,
			"\t%q) printf '%%s\\n' %s ;;\n",
			asTyped(n),
			strings.Join(nextWords(n), " "),
		)
	})

	b.WriteString("\tesac\n}\n" + bashScript)

	_, err = fmt.Fprint(c.out, b.String())

	return err
}

// eachNode visits the program and all of its commands.
func eachNode(n *kong.Node, visit func(*kong.Node)) {
	visit(n)
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			eachNode(child, visit)
		}
	}
}

// asTyped is a command's path with a space before each word.
func asTyped(n *kong.Node) string {
	if n.Type != kong.CommandNode {
		return ""
	}
	return asTyped(n.Parent) + " " + n.Name
}

// nextWords are the commands and flags that may follow.
func nextWords(n *kong.Node) []string {
	var words []string
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			words = append(words, child.Name)
		}
	}

	for _, flags := range n.AllFlags(true) {
		for _, f := range flags {
			words = append(words, "--"+f.Name)
		}
	}

	slices.Sort(words)

	return slices.Compact(words)
}

// fishScript completes for fish: a command where its path was typed.
func fishScript(c console, program *kong.Node) error {
	var err error
	eachNode(program, func(n *kong.Node) {
		path := strings.Fields(asTyped(n))
		const typed = "__fish_seen_subcommand_from "
		conditions := []string{}

		for _, word := range path {
			conditions = append(conditions, typed+word)
		}

		if len(path) == 0 {
			conditions = []string{"__fish_use_subcommand"}
		}

		for _, word := range nextWords(n) {
			kind := "-f -a"
			if flag, isFlag := strings.CutPrefix(word, "--"); isFlag {
				kind, word = "-l", flag
			}

			_, e := fmt.Fprintf(
				c.out,
				"complete -c flexd -n '%s' %s %s\n",
				strings.Join(conditions, "; and "),
				kind,
				word,
			)

			if e != nil {
				err = e
			}
		}
	})

	return err
}
