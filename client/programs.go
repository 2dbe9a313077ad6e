package client

import "context"

// Programs returns the OpenADR programs, and the part of the fleet that each one's events are for.
func (c *Client) Programs(ctx context.Context) (Programs, error) {
	return call[Programs](ctx, c, get, "/grid/programs", nil, nil)
}

// BindProgram has a program's events be for a part of the fleet; with DryRun it says what that would do.
func (c *Client) BindProgram(
	ctx context.Context,
	id ADRObjectID,
	in ProgramBindingRequest,
	q ProgramBindingQuery,
) (ProgramBound, error) {
	return call[ProgramBound](ctx, c, put, "/grid/programs/"+id.String()+"/binding", queryOf(q), in)
}

// UnbindProgram has a program's events be for VENs alone.
func (c *Client) UnbindProgram(
	ctx context.Context,
	id ADRObjectID,
	q ProgramBindingQuery,
) (ProgramBound, error) {
	return call[ProgramBound](
		ctx,
		c,
		remove,
		"/grid/programs/"+id.String()+"/binding",
		queryOf(q),
		nil,
	)
}
