package buffer

// Resize gives s length n, its elements to be written by the caller.
func Resize[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n, n+n/2)
	}
	return s[:n]
}
