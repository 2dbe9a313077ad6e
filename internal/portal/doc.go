// Package portal is the household's page: what its cars and batteries do tonight, forms to
// change that, what its site has earned and why, consents, and withdrawals. The server renders
// complete pages that work without scripts, on a phone and on paper.
//
// # The link
//
// A page is opened by a link that a client requested (reward.Link): 256 random bits, of which
// the hash is stored, valid for a time. As the link is the only authorisation, no page is
// cached, framed or passed to another site. An unknown link and an expired one are the same
// failure; while an expired one is still stored, the page also says how to get a new one.
//
// A link may be forwarded, so it does not suffice for money. The browser gets a secret of its
// own in a cookie. Before a bank account is linked or money is withdrawn, a code that was
// mailed to the site's address must be entered in that browser, unless the client's role says
// otherwise. Wrong codes are counted, and after some of them only a new code is accepted.
//
// # Forms
//
// Each page gives its form a unique name: a form that is sent twice is carried out once. A
// form with errors is shown again with what was typed. A household's wish becomes the same
// event that an app would send (control.Wish); a consent is written in the audit log.
//
// Pages are in English and German, chosen by the link, a cookie or the browser. A translation
// is found by its English text.
//
// /balance/element.js is a script for pages of others, with an element to embed. It contains
// no data: it uses the interface with a component token.
package portal
