// Package battery plans one battery beside a home's load: as modes in slots, or free to
// move any energy.
package battery
