package control

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Greatest and least values of limits and links.
const (
	LimitsMax    = 100_000 // of one import
	SilenceLeast = 10 * time.Second
	SilenceMost  = 7 * 24 * time.Hour
)

// ImportLimits replaces the imported limits of the named groups, in the given directions, from
// now on, and marks the fleet to be planned under them at once. The groups' links count as
// alive. A limit without a direction limits import. A limit that is not permitted is
// Malformed, an unknown group NotFound.
func (s *Service) ImportLimits(
	ctx context.Context,
	org flex.OrgID,
	limits []flex.CapLimit,
) error {
	if len(limits) == 0 || len(limits) > LimitsMax {
		return flex.Fail(
			flex.Malformed,
			"there are %d limits: there should be 1 to %d",
			len(limits),
			LimitsMax,
		)
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		type part struct {
			group     string
			direction flex.Direction
		}

		replaced := map[part]bool{}
		for i := range limits {
			l := &limits[i]
			l.Direction = cmp.Or(l.Direction, flex.Import)
			if err := checkLimit(l); err != nil {
				return err
			}

			l.Source = "import"
			of := part{l.Group, l.Direction}
			if replaced[of] {
				continue
			}

			replaced[of] = true
			if err := replaceLimits(ctx, tx, l); err != nil {
				return err
			}
		}

		if err := tx.AddCapLimits(ctx, limits); err != nil {
			return err
		}
		return tx.CapsChanged(ctx)
	})
}

// replaceLimits deletes the limits of a limit's source, group and direction from now on, and
// records that the group's link is alive.
func replaceLimits(
	ctx context.Context,
	tx *store.Tx,
	l *flex.CapLimit,
) error {
	if err := linkAlive(ctx, tx, l.Group); err != nil {
		return err
	}

	return tx.DropCapLimits(ctx, l.Group, l.Source, l.Direction, tx.Now())
}

// ClearLimits deletes the imported limits of a group, in both directions, from now on, and
// marks the fleet to be planned without them at once. An unknown group is NotFound.
func (s *Service) ClearLimits(
	ctx context.Context,
	org flex.OrgID,
	group string,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		if err := linkAlive(ctx, tx, group); err != nil {
			return err
		}

		for _, direction := range []flex.Direction{flex.Import, flex.Export} {
			err := tx.DropCapLimits(
				ctx,
				group,
				"import",
				direction,
				tx.Now(),
			)
			if err != nil {
				return err
			}
		}

		return tx.CapsChanged(ctx)
	})
}

// checkLimit returns Malformed for a limit that is not permitted.
func checkLimit(l *flex.CapLimit) error {
	switch {
	case l.Group == "":
		return flex.Fail(
			flex.Malformed,
			"a limit names its constraint group: a cap of the whole fleet is set with its caps",
		)

	case l.Power < 0 || l.Power > flex.CapMax:
		return flex.Fail(
			flex.Malformed,
			"a limit of %q is %.10g kW: it should be 0 to %.10g",
			l.Group,
			l.Power.KW(),
			flex.CapMax.KW(),
		)

	case l.Empty():
		return flex.Fail(
			flex.Malformed,
			"a limit of %q ends before it begins",
			l.Group,
		)

	case l.Direction != flex.Import && l.Direction != flex.Export:
		return flex.Fail(
			flex.Malformed,
			"a limit of %q has the direction %q: it should be import or export",
			l.Group,
			l.Direction,
		)
	}

	return nil
}

// linkAlive records that a group's link is alive. An unknown group is NotFound.
func linkAlive(
	ctx context.Context,
	tx *store.Tx,
	group string,
) error {
	if err := tx.CheckScope(ctx, flex.Scope{Group: group}); err != nil {
		return err
	}

	back, err := tx.CapLinkAlive(ctx, group)
	if err == nil && back {
		err = tx.CapsChanged(ctx)
	}

	return err
}

// LinkAlive records that the source of a group's limits is alive, although nothing changed:
// the fallback of its link no longer applies. A group that is unknown, or has no link, is
// NotFound.
func (s *Service) LinkAlive(
	ctx context.Context,
	org flex.OrgID,
	group string,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		if err := linkAlive(ctx, tx, group); err != nil {
			return err
		}

		return checkHasLink(ctx, tx, group)
	})
}

// checkHasLink returns NotFound for a group without a link.
func checkHasLink(
	ctx context.Context,
	tx *store.Tx,
	group string,
) error {
	links, err := tx.CapLinks(ctx)
	if err != nil {
		return err
	}

	if !slices.ContainsFunc(links, func(l flex.CapLink) bool { return l.Group == group }) {
		return noLink(group)
	}

	return nil
}

// noLink is the error of a group without a link.
func noLink(group string) error {
	return flex.Fail(
		flex.NotFound,
		"the group %q has no link: flexd limits list prints them",
		group,
	)
}

// SetLink sets the fallback that applies to a group when nothing was received from the source
// of its limits for a time. The link counts as alive now.
func (s *Service) SetLink(
	ctx context.Context,
	org flex.OrgID,
	l flex.CapLink,
) error {
	if l.Group == "" {
		return flex.Fail(
			flex.Malformed,
			"a link is of a constraint group: name it",
		)
	}

	if l.Fallback == nil && l.Export == nil {
		return flex.Fail(
			flex.Malformed,
			"the link of %q has no fallback: give what is drawn at most, or what is given",
			l.Group,
		)
	}

	if l.Silence < SilenceLeast || l.Silence > SilenceMost {
		return flex.Fail(
			flex.Malformed,
			"the silence is %s: it should be %s to %s",
			flex.Lasting(l.Silence),
			flex.Lasting(SilenceLeast),
			flex.Lasting(SilenceMost),
		)
	}

	for _, w := range []*flex.Watts{l.Fallback, l.Export} {
		if w != nil && (*w < 0 || *w > flex.CapMax) {
			return flex.Fail(
				flex.Malformed,
				"the fallback is %.10g kW: it should be 0 to %.10g",
				w.KW(),
				flex.CapMax.KW(),
			)
		}
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		if err := linkAlive(ctx, tx, l.Group); err != nil {
			return err
		}

		return tx.SetCapLink(ctx, l)
	})
}

// ClearLink deletes a group's link. It is NotFound if it has none.
func (s *Service) ClearLink(
	ctx context.Context,
	org flex.OrgID,
	group string,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		existed, err := tx.DropCapLink(ctx, group)
		if err == nil && !existed {
			err = noLink(group)
		}

		if err != nil {
			return err
		}

		return tx.CapsChanged(ctx)
	})
}

// Limits returns the limits of groups now and later, with the fallbacks of lost links, and the
// links.
func (s *Service) Limits(
	ctx context.Context,
	org flex.OrgID,
) ([]flex.CapLimit, []flex.CapLink, error) {
	var (
		limits []flex.CapLimit
		links  []flex.CapLink
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		limits, err = tx.CapLimits(ctx)
		if err == nil {
			links, err = tx.CapLinks(ctx)
		}
		return err
	})

	return limits, links, err
}

// WatchLinks applies the fallback of each link that has been silent for too long, and marks
// the fleet to be planned under it at once. It is safe to run twice, and on several machines
// at once.
func (s *Service) WatchLinks(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(
		ctx,
		s.DB.OrgsBy((*store.All).OrgsWithSilentLinks),
		s.WatchLinksOf,
	)
}

// WatchLinksOf is WatchLinks for one organisation.
func (s *Service) WatchLinksOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	due, err := s.DB.Due(ctx, org, (*store.Tx).NextCapLink)
	if err != nil || !due {
		return worker.Report{}, err
	}

	var r worker.Report
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := LockInstructions(ctx, tx); err != nil {
			return err
		}

		n, err := tx.LoseCapLinks(ctx)
		r.Count = int(n)
		if err != nil || n == 0 {
			return err
		}
		return tx.CapsChanged(ctx)
	})

	return r, err
}

// limitColumns are the columns that a file of limits has; limitOptions it may have beside
// them.
var (
	// limitColumns are the columns that a file of limits must have; limitOptions those that it
	// may have in addition.
	limitColumns = []string{"group", "start_timestamp", "end_timestamp", "limit_kw"}
	limitOptions = []string{"direction"}
)

// ReadLimits reads limits of feeders from CSV with the columns group, start_timestamp,
// end_timestamp, limit_kw and, unless all limit import, direction. Other columns are refused:
// with a misspelt direction, limits of export would limit import. A file that cannot be read,
// or has a limit that is not permitted, is flex.Invalid.
func ReadLimits(f io.Reader) ([]flex.CapLimit, error) {
	var limits []flex.CapLimit
	for row, err := range csvfile.ReadKnown(f, limitColumns, limitOptions) {
		if err != nil {
			return nil, err
		}

		l, err := limitOf(row)
		if err != nil {
			return nil, err
		}

		limits = append(limits, l)
		if len(limits) > LimitsMax {
			return nil, row.Fault("there are more than %d limits", LimitsMax)
		}
	}

	return limits, nil
}

// limitOf reads a limit from a row.
func limitOf(row csvfile.Row) (flex.CapLimit, error) {
	l := flex.CapLimit{
		Group:     row.Get("group"),
		Direction: cmp.Or(flex.Direction(row.Get("direction")), flex.Import),
	}

	var err error
	l.From, err = row.Instant("start_timestamp")
	if err == nil {
		l.To, err = row.Instant("end_timestamp")
	}
	if err != nil {
		return l, err
	}

	kw, err := strconv.ParseFloat(row.Get("limit_kw"), 64)
	if err != nil || !(math.Abs(kw) <= flex.CapMax.KW()) {
		return l, row.Fault(
			"limit_kw is %q: it should be a power in kW",
			row.Get("limit_kw"),
		)
	}

	l.Power = flex.FromKW(kw)
	if err := checkLimit(&l); err != nil {
		return l, row.Fault("%v", err)
	}

	return l, nil
}
