package flex

// MissingLevel names in a word how much is missing of so many half-hours that are wanted: none if none are,
// full, some, poor from the half on, or gone.
func MissingLevel(missing, wanted int) string {
	switch {
	case wanted == 0:
		return "none"
	case missing == 0:
		return "full"
	case missing == wanted:
		return "gone"
	case 2*missing >= wanted:
		return "poor"
	}

	return "some"
}
