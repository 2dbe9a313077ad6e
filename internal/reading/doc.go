// Package reading takes meter and device readings in, one verdict each, keeps what was
// known when, tells what is missing, and lets readings go when their time is over. A batch
// never fails whole for one bad reading.
package reading
