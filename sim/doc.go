// Package sim simulates homes: chargers that receive and obey profiles, the cars
// that come and go, a market's prices, and bad weather. The demo shows it, the stories run
// on it, and none of it knows more of flexd than a client does.
package sim
