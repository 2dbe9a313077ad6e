package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"flexd/internal/egress"
)

// The flag has a list, or means all private networks if it has none.
func TestReach_Flag(t *testing.T) {
	for _, c := range []struct {
		args, env       string
		prefixes, hosts int
		rest            string
	}{
		{"", "", 0, 0, ""}, {"--allow", "", len(egress.Private), 0, ""}, {"--allow=10.1.0.0/16,localhost", "", 1, 1, ""},
		{"", "true", len(egress.Private), 0, ""}, {"", "false", 0, 0, ""}, {"", "10.1.0.0/16", 1, 0, ""},
		{"--allow=false", "true", 0, 0, ""}, {"--allow", "", len(egress.Private), 0, "word"},
	} {
		t.Setenv("REACH_TEST", c.env)

		var flags struct {
			Allow reach  `env:"REACH_TEST"`
			Rest  string `arg:"" optional:""`
		}
		p, err := kong.New(&flags)
		if err != nil {
			t.Fatal(err)
		}

		var args []string
		for _, a := range []string{c.args, c.rest} {
			if a != "" {
				args = append(args, a)
			}
		}
		_, err = p.Parse(args)
		if err != nil || len(flags.Allow.Prefixes) != c.prefixes || len(flags.Allow.Hosts) != c.hosts || flags.Rest != c.rest {
			t.Errorf("%q, %q: %+v, %v", c.args, c.env, flags, err)
		}
	}

	var flags struct{ Allow reach }
	p, _ := kong.New(&flags)
	if _, err := p.Parse([]string{"--allow=10.1.0.0/99"}); err == nil {
		t.Error("a network that is none is taken")
	}
}
