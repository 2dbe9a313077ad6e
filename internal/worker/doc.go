// Package worker runs background jobs. A background job takes no input: it reads what should be, does it,
// and is safe to run twice or on several machines at once. It runs on a period, and sooner
// when it is woken by a signal that carries no data; the period is the truth, so that a
// crash, a lost wake-up and ordinary life share one path.
package worker
