package main

import (
	"context"
	"strings"

	"flexd/internal/app"
	"flexd/internal/flex"
)

// look is one thing that the doctor looks at.
type look struct {
	part string // what it is called where it fails
	at   func(context.Context, *app.App) ([]symptom, error)
}

// looks are all of them, in the order in which they are printed.
func (d *doctor) looks() []look {
	return []look{
		{"records", checkLaws},
		{"durability", checkDurability},
		{"clock", checkConnection},
		{"writing", checkWriting},
		{"secrets", checkSecrets},
		{"persons", checkPersons},
		{"prices", checkPrices},
		{"price roles", checkRoles},
		{"exceptions", checkExceptions},
		{"modulus check of bank accounts", checkModulus},
		{"jobs", checkJobs},
		{"move to another cell", checkMoves},

		{"usernames", func(ctx context.Context, h *app.App) ([]symptom, error) {
			return checkUsernames(ctx, h, d.eachOtherCell())
		}},
		{"cells", func(ctx context.Context, _ *app.App) ([]symptom, error) {
			return d.checkPlaces(ctx)
		}},
	}
}

// try runs a check. If that fails or panics, the failure is a symptom, and the doctor
// continues with the next check.
func (l look) try(ctx context.Context, h *app.App) []symptom {
	found, err := l.found(ctx, h)
	if err == nil {
		return found
	}

	return append(found, unknown(
		l.part,
		"flexd could not look at this",
		"Whether it is well is not known; the other parts are not affected.",
		err,
	))
}

// unknown is the symptom of what could not be looked at, and why.
func unknown(part, failed, consequence string, err error) symptom {
	why, _, _ := strings.Cut(err.Error(), "\ngoroutine") // the rest is the stack of a panic

	return symptom{
		Part:   part,
		Detail: failed + ": " + strings.ReplaceAll(why, "\n", "; "),
		Do:     consequence + " Where the database works, this is a fault in flexd: report it with this text.",
	}
}

func (l look) found(ctx context.Context, h *app.App) (found []symptom, err error) {
	defer flex.Recover(&err)

	found, err = l.at(ctx, h)

	return found, err
}
