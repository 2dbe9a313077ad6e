// Package contract puts what the services answer into the interface's own form, the types of
// package wire, for the ways out that give the same document: the API, the pages and the
// command line. Quantities leave it in the interface's units: kWh, pence, instants in UTC.
package contract
