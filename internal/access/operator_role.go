package access

import (
	"context"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// OperatorRole is what an operator is trusted with.
type OperatorRole string

// The roles of operators. Each may see everything that the console shows.
const (
	Viewer OperatorRole = "viewer" // changes nothing
	// runs the fleet: halts, caps, pushes, readings
	OnDuty  OperatorRole = "operator"
	Finance OperatorRole = "finance" // settles and pays
	Admin   OperatorRole = "admin"   // everything, and who else may do what
)

// OperatorRoles are all roles, the weakest first.
func OperatorRoles() []OperatorRole {
	return []OperatorRole{Viewer, OnDuty, Finance, Admin}
}

// Permission is what an act of the console asks of an operator's role.
type Permission string

// The permissions. See is everybody's.
const (
	See        Permission = "see"
	Operate    Permission = "operate"
	Pay        Permission = "pay"
	Administer Permission = "administer"
)

// Permissions returns what the role may do. An unknown role may do nothing but see.
func (r OperatorRole) Permissions() []Permission {
	switch r {
	case OnDuty:
		return []Permission{See, Operate}
	case Finance:
		return []Permission{See, Pay}
	case Admin:
		return []Permission{See, Operate, Pay, Administer}
	default:
		return []Permission{See}
	}
}

// May reports whether the role has the permission.
func (r OperatorRole) May(p Permission) bool {
	return slices.Contains(r.Permissions(), p)
}

// parseOperatorRole returns the role of that name. An unknown one is Malformed.
func parseOperatorRole(name OperatorRole) (OperatorRole, error) {
	if slices.Contains(OperatorRoles(), name) {
		return name, nil
	}

	names := make([]string, 0, len(OperatorRoles()))
	for _, r := range OperatorRoles() {
		names = append(names, string(r))
	}

	return "", flex.Fail(
		flex.Malformed,
		"%q is no role of an operator: give one of %s",
		string(name),
		strings.Join(names, ", "),
	)
}

// SetOperatorRole changes what an operator may do, from their next request on. A name that is
// nobody's is NotFound, a removed operator's a Conflict.
func (s *Service) SetOperatorRole(
	ctx context.Context,
	name string,
	role OperatorRole,
) error {
	role, err := parseOperatorRole(role)
	if err != nil {
		return err
	}

	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}

		if !o.RemovedAt.IsZero() {
			return flex.Fail(
				flex.Conflict,
				"%s was removed: give them a new password first",
				name,
			)
		}

		if o.Issuer != "" {
			return flex.Fail(
				flex.Conflict,
				"%s has the role that their groups give at the identity provider: change it there",
				name,
			)
		}

		return all.SetOperatorRole(ctx, o.ID, string(role))
	})
}

// OperatorSessions returns where operators are logged in, the newest session first.
func (s *Service) OperatorSessions(ctx context.Context) ([]store.OperatorSession, error) {
	var sessions []store.OperatorSession
	err := s.people().ReadAll(ctx, func(all *store.All) error {
		var err error
		sessions, err = all.OperatorSessions(ctx)
		return err
	})

	return sessions, err
}

// EndOperatorSessions logs an operator out everywhere. They may log in again.
func (s *Service) EndOperatorSessions(ctx context.Context, name string) error {
	return s.people().WriteAll(ctx, func(all *store.All) error {
		o, err := all.OperatorNamed(ctx, name)
		if err != nil {
			return err
		}
		return all.EndOperatorSessions(ctx, o.ID)
	})
}
