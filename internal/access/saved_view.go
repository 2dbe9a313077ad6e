package access

import (
	"context"
	"strings"
	"unicode/utf8"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Limits of saved views.
const (
	SavedViewsMax    = 100  // of an operator
	SavedViewNameMax = 60   // characters of a name
	SavedViewPathMax = 2000 // bytes of an address
)

// SavedView is a list that operators want to see again.
type SavedView struct {
	ID      flex.SavedViewID
	Owner   string
	Name    string
	Path    string
	Org     flex.OrgID // whose operators see it; zero for its owner alone
	OrgName string
	May     bool // whether who asks may delete it
}

// SavedViews returns an operator's own views, and those that were shared with their organisations,
// by name.
func (s *Service) SavedViews(
	ctx context.Context,
	who Operator,
) ([]SavedView, error) {
	var views []SavedView
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		views = nil

		o, err := all.OperatorNamed(ctx, who.Name)
		if err != nil {
			return err
		}

		found, err := all.SavedViews(ctx, o.ID)
		for _, v := range found {
			views = append(views, SavedView{
				ID:      v.ID,
				Owner:   v.Owner,
				Name:    v.Name,
				Path:    v.Path,
				Org:     v.Org,
				OrgName: v.OrgName,
				May:     mayDrop(who, v),
			})
		}

		return err
	})

	return views, err
}

// mayDrop reports whether somebody may delete a view: their own, and as an administrator what is
// shared with an organisation of theirs.
func mayDrop(who Operator, v store.SavedView) bool {
	shared := !v.Org.IsZero() && who.Reaches(v.Org)
	return v.Owner == who.Name || shared && who.May(Administer)
}

// SaveView keeps a view in an operator's name, instead of theirs of the same list that has this name and is for the same people. A name or an address that cannot be is Malformed, an
// organisation that they are not of NotFound, and one view more than SavedViewsMax a Conflict.
func (s *Service) SaveView(
	ctx context.Context,
	who Operator,
	v SavedView,
) error {
	v.Name = strings.TrimSpace(v.Name)
	if n := utf8.RuneCountInString(v.Name); n == 0 || n > SavedViewNameMax {
		return flex.Fail(
			flex.Malformed,
			"a view has a name of 1 to %d characters, not %d",
			SavedViewNameMax,
			n,
		)
	}

	if len(v.Path) > SavedViewPathMax {
		return flex.Fail(
			flex.Malformed,
			"the address of a view has at most %d bytes, not %d",
			SavedViewPathMax,
			len(v.Path),
		)
	}

	if !v.Org.IsZero() && !who.Reaches(v.Org) {
		return flex.Fail(flex.NotFound, "there is no organisation %s", v.Org)
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		return addView(ctx, all, who, v)
	})
}

func addView(
	ctx context.Context,
	all *store.All,
	who Operator,
	v SavedView,
) error {
	o, err := all.OperatorNamed(ctx, who.Name)
	if err != nil {
		return err
	}

	// Of two views that are saved at once the second finds the first: it replaces or counts it.
	if _, err := all.LockOperator(ctx, o); err != nil {
		return err
	}

	if err := replaceView(ctx, all, o.ID, v); err != nil {
		return err
	}

	n, err := all.CountSavedViews(ctx, o.ID)
	if err != nil {
		return err
	}

	if n >= SavedViewsMax {
		return flex.Fail(
			flex.Conflict,
			"%s has %d saved views, which is the most: delete one first",
			who.Name,
			n,
		)
	}

	return all.AddSavedView(ctx, &store.SavedView{
		Operator: o.ID,
		Name:     v.Name,
		Path:     v.Path,
		Org:      v.Org,
	})
}

// replaceView deletes the operator's view that another one takes the place of.
func replaceView(
	ctx context.Context,
	all *store.All,
	operator flex.OperatorID,
	v SavedView,
) error {
	found, err := all.SavedViews(ctx, operator)
	if err != nil {
		return err
	}

	list, _, _ := strings.Cut(v.Path, "?")
	for _, old := range found {
		own := old.Operator == operator && old.Org == v.Org
		of, _, _ := strings.Cut(old.Path, "?")

		if !own || old.Name != v.Name || of != list {
			continue
		}
		if err := all.DropSavedView(ctx, old.ID); err != nil {
			return err
		}
	}

	return nil
}

// DropView deletes a view, and returns where it led. What somebody may not delete is NotFound to
// them, as what is not there.
func (s *Service) DropView(
	ctx context.Context,
	who Operator,
	id flex.SavedViewID,
) (string, error) {
	var path string
	err := s.people().WriteAll(ctx, func(all *store.All) error {
		v, err := all.SavedView(ctx, id)
		if err != nil {
			return err
		}

		if !mayDrop(who, v) {
			return flex.Fail(
				flex.NotFound,
				"there is no saved view of that id",
			)
		}

		path = v.Path

		return all.DropSavedView(ctx, id)
	})

	return path, err
}
