// Package portal is the household's page: what its cars and batteries do tonight, forms to
// change that, what its site has earned and why, consents, and withdrawals. The server renders complete pages
// that work without scripts, on a phone and on paper.
//
// # The link
//
// A page is opened by a link that a client requested (reward.Link): 256 random bits, kept as their hash, for a time.
// The link is the only authorisation, so nothing here is cached, framed or passed to another
// site. An unknown link and one that has ended are the same failure; of one that has ended the page still says how to get a new one,
// as long as that is kept.
//
// A link may be forwarded, so it does not suffice for money: a browser gets a secret of its own in a cookie, and a code that was
// mailed to the site's address must be entered in that browser before a bank account is linked or money is withdrawn, unless the client's
// role says otherwise. A wrong code counts, and after some only a new one will do.
//
// # Forms
//
// A form has the name that was made with it: sent twice, it asks once. A wrong form is shown again with what was typed.
// What a household wishes is taken as the event that an app would send (control.Wish), and is in the audit log where it is a consent.
//
// Pages are in English and German, by the link, a cookie or the browser. A message is named by its English text.
//
// /balance/element.js is a script for pages of others, an element to embed. It has no data: it asks the interface with a component token.
package portal
