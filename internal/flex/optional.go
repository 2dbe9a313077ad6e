package flex

// Optional is a value that may be left out, so that zero can be chosen.
type Optional[T comparable] struct {
	Value T
	Given bool
}

// Some is a value that is given.
func Some[T comparable](v T) Optional[T] {
	return Optional[T]{Value: v, Given: true}
}

// Or returns the value, or another if none is given.
func (o Optional[T]) Or(other T) T {
	if o.Given {
		return o.Value
	}
	return other
}
