package console

import (
	"context"

	"flexd/internal/flex"
)

// orgBy finds out whose something is, such as a site.
type orgBy[Of any] func(ctx context.Context, id flex.ID[Of]) (flex.OrgID, error)

// pathID reads the id in the request's path, of what, and whose it is.
func pathID[Of any](
	r *request,
	what string,
	by orgBy[Of],
) (flex.ID[Of], flex.OrgID, error) {
	var id flex.ID[Of]
	var org flex.OrgID
	if err := readID(&id, r.PathValue("id"), what); err != nil {
		return id, org, err
	}

	org, err := by(r.Context(), id)

	return id, org, err
}

// confirmedID is pathID for a form that must say that it is meant, by a word or a tick, and why.
func confirmedID[Of any](
	r *request,
	what string,
	by orgBy[Of],
	word string,
) (flex.ID[Of], flex.OrgID, string, error) {
	reason, err := confirmed(r, word)
	var id flex.ID[Of]
	var org flex.OrgID
	if err != nil {
		return id, org, "", err
	}

	id, org, err = pathID(r, what, by)

	return id, org, reason, err
}
