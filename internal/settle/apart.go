package settle

// Deviations returns the deviation of the event's meter in each of its half-hours, in Wh, less
// what is settled on other meters already. Other cases take it as their Apart. It is known
// where there is a reading and a baseline that may be paid on, whether or not the price is
// known. It fails as Settle does.
func (c *Case) Deviations() ([]SettledElsewhere, error) {
	r, err := Settle(c)
	if err != nil {
		return nil, err
	}

	deviations := make([]SettledElsewhere, len(r.Periods))
	for i, p := range r.Periods {
		other, _ := c.settledElsewhere(p.Period)
		deviations[i] = SettledElsewhere{
			Period: p.Period,
			Flex:   p.Metered - p.Baseline - other,
			Known:  p.Read && r.Quality != Insufficient,
		}
	}

	return deviations, nil
}
