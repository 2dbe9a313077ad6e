package main

import (
	"github.com/alecthomas/kong"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

// reach is a flag for private networks and hosts: a list after an equals sign, or all of them
// if the flag has no value.
type reach struct{ egress.Reach }

// Decode reads the flag.
func (r *reach) Decode(ctx *kong.DecodeContext) error {
	text := "true"
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		if err := ctx.Scan.PopValueInto("list", &text); err != nil {
			return err
		}
	}

	var err error
	r.Reach, err = egress.ParseReach(text)
	if err != nil {
		return flex.Fail(flex.Invalid, "--allow-private-endpoints: %v", err)
	}

	return nil
}

// IsBool reports that the flag needs no value.
func (r *reach) IsBool() bool { return true }
