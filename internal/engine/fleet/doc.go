// Package fleet plans cars and batteries that share caps or a traded position, at the least
// cost, with prices that prove a lower bound.
package fleet
