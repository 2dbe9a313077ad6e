// Package console is the operators' web interface: pages that show what flexd does and why, and let
// an operator act. The server renders complete pages that work without scripts; scripts add the
// plots and keep numbers current. Everything a page needs is embedded, and the content security policy
// forbids other hosts.
//
// It draws what the services' views say, across organisations, each at its own clock, and acts
// through the services, every act in the audit log. It has no way to the database. What a plot shows can be had as JSON, what a table shows as CSV or
// JSON, under the same login.
package console
