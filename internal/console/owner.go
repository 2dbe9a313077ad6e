package console

import (
	"context"

	"flexd/internal/flex"
)

// orgBy returns the organisation of an object by the object's id.
type orgBy[Of any] func(ctx context.Context, id flex.ID[Of]) (flex.OrgID, error)

// pathID reads the id in the request's path, and the object's organisation.
func pathID[Of any](
	r *request,
	label string,
	by orgBy[Of],
) (flex.ID[Of], flex.OrgID, error) {
	var id flex.ID[Of]
	var org flex.OrgID
	if err := readID(&id, r.PathValue("id"), label); err != nil {
		return id, org, err
	}

	org, err := by(r.Context(), id)

	return id, org, err
}

// confirmedID is pathID for a form that must be confirmed by a typed word or a tick. It also
// returns the reason.
func confirmedID[Of any](
	r *request,
	label string,
	by orgBy[Of],
	confirmation string,
) (flex.ID[Of], flex.OrgID, string, error) {
	reason, err := confirmedDecision(r, confirmation)
	var id flex.ID[Of]
	var org flex.OrgID
	if err != nil {
		return id, org, "", err
	}

	id, org, err = pathID(r, label, by)

	return id, org, reason, err
}
