// Package egress is the only way out of flexd by HTTP. It lets a request leave for the
// public internet alone: the guard stands at the dial, after the name is resolved, so that
// neither a redirect nor a changed DNS answer passes it. It follows no redirect, uses no
// proxy, inflates nothing, and every answer is bounded in size and time.
package egress
