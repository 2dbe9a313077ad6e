package store

import "slices"

// keptMax is how many records a transaction that only reads keeps. What is read of a whole fleet is not asked for twice.
const keptMax = 256

// keptKey says which record was asked for: what it is, and whose.
type keptKey struct {
	what string
	id   [16]byte
}

// readOnce returns what was read of the same key before, in a transaction that only reads: it is the same throughout. In one that writes it
// is read again, as that may have changed it, or waited for one that did. What it returns is shared with whoever asked before.
func readOnce[T any](
	tx *Tx,
	what string,
	id [16]byte,
	read func() (T, error),
) (T, error) {
	if tx.kept == nil {
		return read()
	}

	key := keptKey{what, id}
	if v, found := tx.kept[key]; found {
		return v.(T), nil
	}

	v, err := read()
	if err == nil && len(tx.kept) < keptMax {
		tx.kept[key] = v
	}

	return v, err
}

// onceList is once for a list, of which each caller has its own.
func onceList[T any](
	tx *Tx,
	what string,
	id [16]byte,
	read func() ([]T, error),
) ([]T, error) {
	list, err := readOnce(tx, what, id, read)
	if tx.kept == nil {
		return list, err
	}
	return slices.Clone(list), err
}
