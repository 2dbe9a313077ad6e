package mcp

import (
	"context"
	"net/http"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"flexd/internal/flex"
)

// MaxAgents is how many agents' confirmations are kept at once over HTTP.
const MaxAgents = 64

// MaxOrgAgents is how many of them may be of one organisation itself, and as many of its households.
const MaxOrgAgents = 16

// OverHTTP returns the handler of the protocol's streamable HTTP transport. Each request is of
// the agent that open finds, by a key: what waits to be confirmed is kept for that key alone, and
// is forgotten once MaxOrgAgents others of its group have spoken since: an organisation's own agents are
// one, and its households' are another. Where there are more than MaxAgents, the oldest of the group that has the most is forgotten. Open fails with Unauthorized for who is
// not let in. Requests of web pages are refused.
func OverHTTP(
	open func(*http.Request) (key string, s Settings, err error),
) http.Handler {
	return overHTTP(open, New)
}

// overHTTP is OverHTTP with servers that something makes.
func overHTTP(
	open func(*http.Request) (key string, s Settings, err error),
	create func(Settings) (*sdk.Server, error),
) http.Handler {
	known := &agents{create: create}
	protocol := sdk.NewStreamableHTTPHandler(
		func(r *http.Request) *sdk.Server {
			server, _ := r.Context().Value(agentKey{}).(*sdk.Server)
			return server
		},
		// An answer is a stream, so that what a tool says in the midst of a call arrives too.
		&sdk.StreamableHTTPOptions{
			Stateless:           true,
			MaxRequestBodyBytes: 2 * MaxArguments,
		},
	)

	answer := func(w http.ResponseWriter, r *http.Request) {
		key, settings, err := open(r)
		var server *sdk.Server
		if err == nil {
			server, err = known.server(key, settings)
		}

		if err != nil {
			refuse(w, err)
			return
		}

		ctx := context.WithValue(r.Context(), agentKey{}, server)
		protocol.ServeHTTP(w, r.WithContext(ctx))
	}

	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(answer))
}

// agentKey finds a request's server in its context.
type agentKey struct{}

// refuse answers whoever is not let in.
func refuse(w http.ResponseWriter, err error) {
	switch flex.KindOf(err) {
	case flex.Unauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="flexd"`)
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case flex.TooMany:
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusTooManyRequests)
	case flex.Unavailable:
		http.Error(w, "not available; try again", http.StatusServiceUnavailable)
	default:
		http.Error(
			w,
			"flexd failed, and its log says why",
			http.StatusInternalServerError,
		)
	}
}

// agents are the servers of those who spoke, the latest last.
type agents struct {
	create func(Settings) (*sdk.Server, error)

	mu   sync.Mutex
	list []agent
}

// group is the agents that are counted together: an organisation has many households, and none of them has what its own agents
// are to confirm forgotten.
type group struct {
	org        flex.OrgID
	households bool
}

type agent struct {
	key    string
	of     group
	server *sdk.Server
}

// server returns an agent's server, and makes it for one who is new.
func (a *agents) server(key string, s Settings) (*sdk.Server, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	at := slices.IndexFunc(a.list, func(k agent) bool { return k.key == key })
	if at >= 0 {
		found := a.list[at]
		a.list = append(slices.Delete(a.list, at, at+1), found)
		return found.server, nil
	}

	server, err := a.create(s)
	if err != nil {
		return nil, err
	}

	of := group{s.Org, s.Household}
	a.list = append(a.list, agent{key: key, of: of, server: server})
	a.forget(of)

	return server, nil
}

// forget takes an agent out if a group, which has one more, has too many, or all have.
func (a *agents) forget(of group) {
	count := map[group]int{}
	for _, k := range a.list {
		count[k.of]++
	}

	most := of
	if count[of] <= MaxOrgAgents {
		if len(a.list) <= MaxAgents {
			return
		}

		for _, k := range a.list {
			if count[k.of] > count[most] {
				most = k.of
			}
		}
	}

	at := slices.IndexFunc(a.list, func(k agent) bool { return k.of == most })
	a.list = slices.Delete(a.list, at, at+1)
}
