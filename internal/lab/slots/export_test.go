package slots

// Labels is how many labels the last search of Switch made.
func (w *Solver) Labels() int { return len(w.sw.arena) }
