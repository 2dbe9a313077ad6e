package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"flexd/internal/adr"
	"flexd/internal/api"
	"flexd/internal/cell"
	"flexd/internal/console"
	"flexd/internal/flex"
	"flexd/internal/openadr"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// Why a request is not answered now.
var (
	errCellMoves = flex.Fail(
		flex.Unavailable,
		"the organisation moves to another database; try again",
	)
	errCellDown = flex.Fail(
		flex.Unavailable,
		"a database does not answer, and the organisation may be in it; try again",
	)
)

// Handler passes each request to the App of the cell that has its organisation.
func (c *Cells) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			c.ready(w, r.URL.Query().Get("cell"))
			return
		case console.CellPath:
			c.Home().Handler().ServeHTTP(w, r)
			return
		}

		o, err := c.route(r)
		if err != nil {
			c.Home().API.Refuse(err).ServeHTTP(w, r)
			return
		}

		a := o.app.Load()
		if a == nil {
			c.Home().API.Refuse(errCellDown).ServeHTTP(w, r)
			return
		}

		a.Handler().ServeHTTP(w, r)
	})
}

// chosen returns the cell whose pages the console shows: the one that the operator chose, or
// home if none was chosen or it is not open. Home's pages say which one is not. Operators log
// in at home, so that one limit of failed logins counts whatever cell is chosen.
func (c *Cells) chosen(r *http.Request) *ownCell {
	if strings.HasPrefix(r.URL.Path, console.Root+"/login") {
		return c.cells[0]
	}

	o, err := c.named(c.Home().Console.CellOf(r))
	if err != nil || o.app.Load() == nil {
		return c.cells[0]
	}

	return o
}

// ready answers whether cells are ready. Without a name one cell is enough, since the process
// can serve its organisations.
func (c *Cells) ready(w http.ResponseWriter, name string) {
	cells, status := map[string]string{}, http.StatusServiceUnavailable
	for _, o := range c.cells {
		if name != "" && name != o.name {
			continue
		}

		cells[o.name] = "not ready"
		if c.known(o) != nil {
			cells[o.name], status = "ready", http.StatusOK
		}
	}

	word := "ready"
	if status != http.StatusOK {
		word = "not ready"
		w.Header().Set("Retry-After", "1")
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": word, "cells": cells})
}

// route returns the cell that a request is for.
func (c *Cells) route(r *http.Request) (*ownCell, error) {
	path := r.URL.Path
	if path == console.Root || strings.HasPrefix(path, console.Root+"/") {
		return c.chosen(r), nil
	}
	if path == "/metrics" {
		return c.named(r.URL.Query().Get("cell"))
	}

	kind, key, shown := cellKey(r)
	if !shown {
		return c.cells[0], nil
	}

	o, err := c.find(r.Context(), kind, key)
	if o != nil || err != nil {
		return o, err
	}

	// A web page may read that its token has expired if another token was made for its origin.
	if origin := r.Header.Get("Origin"); kind == store.KeyToken && origin != "" {
		o, err = c.find(r.Context(), store.KeyOrigin, origin)
	}
	if o == nil && err == nil {
		o = c.cells[0] // which refuses it
	}

	return o, err
}

// named returns the cell with the name; home for the empty name.
func (c *Cells) named(name string) (*ownCell, error) {
	for _, o := range c.cells {
		if o.name == name || name == "" {
			return o, nil
		}
	}

	return nil, flex.Fail(flex.NotFound, "no cell is named %q", name)
}

// cellKey returns the kind and value by which a request's organisation can be found, if it has
// one.
func cellKey(r *http.Request) (kind store.CellKey, key any, shown bool) {
	path := r.URL.Path

	if rest, ok := strings.CutPrefix(path, adr.CallbackRoot); ok {
		id, err := adr.ParseID(rest)
		return store.KeyUpstream, id.Bytes(), err == nil
	}

	if rest, ok := strings.CutPrefix(path, reward.Root); ok {
		token, _, _ := strings.Cut(rest, "/")
		isFile := strings.Contains(token, ".") // a style sheet or a script, of no organisation

		return store.KeyBalanceLink, hashed(token), !isFile
	}

	if path == "/oauth/callback" {
		return store.KeyCloudLink, hashed(r.URL.Query().Get("state")), true
	}

	if path == loginPath || path == openadr.Root+"/auth/token" {
		name := clientName(r)
		return store.KeyCredential, name, name != ""
	}

	if r.Method == http.MethodOptions {
		origin := r.Header.Get("Origin")
		return store.KeyOrigin, origin, origin != ""
	}

	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	shown = strings.EqualFold(scheme, "bearer") && token != ""

	return store.KeyToken, hashed(strings.TrimSpace(token)), shown
}

func hashed(text string) []byte {
	hash := sha256.Sum256([]byte(text))
	return hash[:]
}

// loginPath is the path of organisations' logins.
const loginPath = "/auth/token-form"

// loginMax is the longest login that is read to find its organisation, in bytes.
const loginMax = 64 << 10

// clientName returns the username or client id of a login, as the transport would read it. The
// request's body can be read again afterwards.
func clientName(r *http.Request) string {
	head, err := io.ReadAll(io.LimitReader(r.Body, loginMax))
	r.Body = readAgain{
		Reader: io.MultiReader(bytes.NewReader(head), r.Body),
		Closer: r.Body,
	}
	if err != nil {
		return ""
	}

	form := r.Clone(r.Context())
	form.Body = io.NopCloser(bytes.NewReader(head))
	_ = form.ParseMultipartForm(loginMax) // an invalid form has no name

	// The API reads the form of the password grant without the header, and OpenADR reads no
	// header.
	if name := form.PostForm.Get("username"); name != "" {
		return name
	}
	if id, _, basic := r.BasicAuth(); basic && r.URL.Path == loginPath {
		return api.BasicPart(id)
	}

	return form.PostForm.Get("client_id")
}

// readAgain is a request body whose beginning has been read and is returned once more.
type readAgain struct {
	io.Reader
	io.Closer
}

// find returns the cell of the organisation with the key: nil if no cell knows the key. It
// fails if a cell that does not answer may know it.
func (c *Cells) find(
	ctx context.Context,
	kind store.CellKey,
	key any,
) (*ownCell, error) {
	hash, _ := key.([]byte)
	if kind == store.KeyToken {
		if org, ok := c.orgs.get([32]byte(hash)); ok {
			o, err := c.place(org, nil)
			if o != nil || err != nil {
				return o, err
			}
		}
	}

	down := false

	for _, o := range c.cells {
		if c.known(o) == nil {
			down = true
			continue
		}

		org, err := o.orgOf(ctx, kind, key)
		if flex.KindOf(err) == flex.NotFound {
			continue
		}
		if err != nil {
			down = true
			continue
		}

		if kind == store.KeyToken {
			c.orgs.put([32]byte(hash), org)
		}

		return c.place(org, o)
	}

	if down {
		return nil, errCellDown
	}

	return nil, nil
}

func (o *ownCell) orgOf(
	ctx context.Context,
	kind store.CellKey,
	key any,
) (flex.OrgID, error) {
	ctx, cancel := context.WithTimeout(ctx, cellWait)
	defer cancel()

	var org flex.OrgID
	err := o.app.Load().DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.OrgOf(ctx, kind, key)
		return err
	})

	return org, err
}

// place returns the cell that serves an organisation. If the organisation is not being moved,
// that is the cell where it was just found, even if the cell's snapshot is older.
func (c *Cells) place(org flex.OrgID, found *ownCell) (*ownCell, error) {
	var had *ownCell
	moves, down := false, false

	for _, o := range c.cells {
		states := c.known(o)
		down = down || states == nil

		state, has := states[org]
		moves = moves || state != ""

		serves := state == "" || state == cell.Leaving
		if had == nil && has && serves {
			had = o
		}
	}

	if found != nil && had != found {
		found.missed.Store(true)
	}
	if found != nil && !moves && !down {
		return found, nil
	}

	switch {
	case had != nil:
		return had, nil
	case moves:
		return nil, errCellMoves
	case down:
		return nil, errCellDown
	default:
		return found, nil
	}
}

// tokenOrgs is a cache of the organisations of tokens, which never change.
type tokenOrgs struct {
	mu   sync.RWMutex
	orgs map[[32]byte]flex.OrgID
}

// tokenOrgsMax is the size of the cache; when it is full, it is emptied.
const tokenOrgsMax = 20_000

func (t *tokenOrgs) get(hash [32]byte) (flex.OrgID, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	org, ok := t.orgs[hash]
	return org, ok
}

func (t *tokenOrgs) put(hash [32]byte, org flex.OrgID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.orgs == nil || len(t.orgs) >= tokenOrgsMax {
		t.orgs = map[[32]byte]flex.OrgID{}
	}
	t.orgs[hash] = org
}
