package store

import "slices"

// readCacheMax is how many records a transaction that only reads caches. That is enough for what is
// read repeatedly; the records of a whole fleet are read once each.
const readCacheMax = 256

// cacheKey identifies a cached record: its kind and its id, or that of its site or asset.
type cacheKey struct {
	kind string
	id   [16]byte
}

// readOnce returns the result of read, or what it returned for the same kind and id before.
// Only a transaction that only reads has a cache: its snapshot does not change. One that
// writes may have changed the record, or waited for another that did, and reads again. The
// result is shared and must not be changed.
func readOnce[T any](
	tx *Tx,
	kind string,
	id [16]byte,
	read func() (T, error),
) (T, error) {
	if tx.readCache == nil {
		return read()
	}

	key := cacheKey{kind, id}
	if v, found := tx.readCache[key]; found {
		return v.(T), nil
	}

	v, err := read()
	if err == nil && len(tx.readCache) < readCacheMax {
		tx.readCache[key] = v
	}

	return v, err
}

// readListOnce is readOnce for a list. Each caller gets a copy.
func readListOnce[T any](
	tx *Tx,
	kind string,
	id [16]byte,
	read func() ([]T, error),
) ([]T, error) {
	list, err := readOnce(tx, kind, id, read)
	if tx.readCache == nil {
		return list, err
	}
	return slices.Clone(list), err
}
