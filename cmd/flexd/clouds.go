package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/wire"
)

// cloud is a manufacturer's cloud in the file.
type cloud struct {
	Name         string   `json:"name"`
	AuthorizeURL string   `json:"authorize_url"`
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	Scopes       []string `json:"scopes"`
}

// check refuses an invalid configuration of a cloud.
func (c *cloud) check() error {
	for _, text := range []string{c.AuthorizeURL, c.TokenURL} {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s: %q is not an https URL", c.Name, text)
		}
	}

	if c.ClientID == "" {
		return fmt.Errorf("%s has no client_id", c.Name)
	}

	return nil
}

// readClouds reads the file of manufacturers' clouds; no path means none.
func readClouds(path string) ([]registry.Provider, error) {
	if path == "" {
		return nil, nil
	}

	b, err := readUnmarked(path)
	if err != nil {
		return nil, err
	}

	var list []cloud
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	var clouds []registry.Provider
	for i, c := range list {
		if !slices.Contains(wire.Enum("OAuthProvider"), c.Name) {
			return nil, fmt.Errorf(
				"%s: provider %d has the name %q, which is none of %v",
				path,
				i+1,
				c.Name,
				wire.Enum("OAuthProvider"),
			)
		}

		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}

		clouds = append(clouds, registry.Provider{
			Name:         c.Name,
			AuthorizeURL: c.AuthorizeURL,
			TokenURL:     c.TokenURL,
			ClientID:     c.ClientID,
			ClientSecret: flex.Secret(c.ClientSecret),
			Scopes:       c.Scopes,
		})
	}

	return clouds, nil
}
