// Package portal is the household's page: what its cars and batteries do tonight, forms to
// change that, what its site has earned and why, and withdrawals. The server renders complete pages
// that work without scripts, on a phone and on paper. A page is opened by a link that a client requested.
// The link is the only authorisation, so nothing here is cached, framed or passed to another
// site.
package portal
