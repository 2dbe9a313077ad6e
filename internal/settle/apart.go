package settle

// Deviations returns by how much the event's meter deviated in each of its half-hours, in Wh, less what
// is set apart already: what is to be set apart elsewhere in its turn. It is known where there is a
// baseline to be paid on and a reading, whatever the price. It fails as Settle does.
func (c *Case) Deviations() ([]Apart, error) {
	r, err := Settle(c)
	if err != nil {
		return nil, err
	}

	deviations := make([]Apart, len(r.Periods))
	for i, p := range r.Periods {
		other, _ := c.apart(p.Period)
		deviations[i] = Apart{
			Period: p.Period,
			Flex:   p.Metered - p.Baseline - other,
			Known:  p.Read && r.Quality != Insufficient,
		}
	}

	return deviations, nil
}
