package plan

// ifRaced is a size under the race detector, and without it.
func ifRaced(raced, plain int) int {
	if Raced {
		return raced
	}
	return plain
}
