package site

// hulls adds, where two opposite directions at once could pay, the convex hull of using only
// one of them: a / most of a + b / most of b <= 1.
func (m *model) hulls() {
	p := m.p

	for t := range m.balance {
		in, out := m.extremes(t)
		in, out = min(in, p.GridImport*p.Hours), min(out, p.GridExport*p.Hours)
		m.lp.Widest(m.imported[t], max(in, 0))
		m.lp.Widest(m.exported[t], max(out, 0))

		m.opposites(t, in, out)
	}
}

// opposites adds the hulls of one slot.
func (m *model) opposites(t int, in, out float64) {
	p := m.p
	cycles := p.Export[t] > p.Import[t]

	if cycles {
		m.hull(m.imported[t], m.exported[t], in, out)
		m.sources(t, out)
		m.sinks(t, in)
	}

	if !cycles && p.Import[t] >= 0 && p.Export[t] >= 0 {
		return
	}

	for _, s := range m.batteries {
		m.hull(
			s.charge[t].more,
			s.discharge[t].more,
			s.charge[t].most,
			s.discharge[t].most,
		)
	}

	for k, s := range m.cars {
		if p.Cars[k].V2G != nil && s.discharge[t].more >= 0 {
			m.carHull(s.charge[t], s.discharge[t])
		}
	}
}

// sources adds that exported energy comes from discharge, or from what the roof gives beyond
// the load. If the load exceeds the roof, it takes a part of the discharge first; then at best
// export / most export = discharge / most discharge.
func (m *model) sources(t int, most float64) {
	rest := m.p.PV[t] - m.p.Load[t]

	if most <= energyTolerance {
		return
	}

	share := most / max(most, most-rest)
	row := m.row(max(rest, 0)) // export - share discharge + slack = rest
	m.lp.AddEntry(m.exported[t], row, 1)

	all := max(rest, 0)

	for _, s := range m.batteries {
		m.lp.AddEntry(s.discharge[t].more, row, -share)
		all += s.discharge[t].most
	}

	for k, s := range m.cars {
		if m.p.Cars[k].V2G != nil && s.discharge[t].more >= 0 {
			m.lp.AddEntry(s.discharge[t].more, row, -share)
			all += s.discharge[t].most
		}
	}

	m.slack(row, 0, all)
}

// sinks adds the same for imported energy, which must be used somewhere.
func (m *model) sinks(t int, most float64) {
	rest := m.p.Load[t] - m.p.PV[t]

	if m.p.Curtailable {
		rest = m.p.Load[t]
	}

	if most <= energyTolerance {
		return
	}

	share := most / max(most, most-rest)
	row := m.row(max(rest, 0))
	m.lp.AddEntry(m.imported[t], row, 1)

	for _, s := range m.batteries {
		m.lp.AddEntry(s.charge[t].more, row, -share)
	}

	for _, s := range m.cars {
		m.enterDraw(s.charge[t], row, -share)
	}

	if m.tank != nil {
		m.lp.AddEntry(m.tank[t], row, -share*m.p.Tank.Element*m.p.Hours)
	}

	if m.heat != nil {
		m.enterDraw(m.heat[t], row, -share)
	}

	m.slack(row, 0, most+max(0, -rest)+1e3)
}

// extremes returns the most that the site can draw and give in a slot.
func (m *model) extremes(t int) (in, out float64) {
	p := m.p
	in = p.Load[t] - p.PV[t]
	out = -in

	if p.Curtailable {
		in = p.Load[t]
	}

	in += m.building()

	for _, s := range m.batteries {
		in += s.charge[t].most
		out += s.discharge[t].most
	}

	for k, s := range m.cars {
		in += s.charge[t].most

		if p.Cars[k].V2G != nil {
			out += s.discharge[t].most
		}
	}

	return in, out
}

func (m *model) hull(a, b int, mostA, mostB float64) {
	if mostA <= energyTolerance || mostB <= energyTolerance {
		return
	}

	row := m.row(1)
	m.slack(row, 0, 1)
	m.lp.AddEntry(a, row, 1/mostA)
	m.lp.AddEntry(b, row, 1/mostB)
}

// carHull adds the hull for a car. Its charging may have a binary of its own.
func (m *model) carHull(in, out draw) {
	if in.on >= 0 {
		m.hull(in.on, out.more, 1, out.most)
	} else if in.more >= 0 {
		m.hull(in.more, out.more, in.most, out.most)
	}
}
