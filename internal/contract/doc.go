// Package contract converts the services' results into the types of package wire, for all that
// give the same document: the API, the console's pages and the command line. It converts
// quantities to the interface's units: kWh, pence, instants in UTC.
package contract
