package app

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// asks is who asks for the pair's use, and what is to come of each.
type asks struct {
	products     []flex.Product
	instructions []flex.Instruction
	want         []flex.InstructedEvents // of the instructions, then of the products
}

// TestProduct_OneHalfHour: what two products, or a product and an instruction, ask for in one
// half-hour is brought by one car each, at its own price; no kilowatt-hour is paid for twice,
// whoever asks for more.
func TestProduct_OneHalfHour(t *testing.T) {
	evening := time.Date(2026, 1, 15, 20, 0, 0, 0, time.UTC)
	car := func(reference string, pounds float64) flex.Product {
		return productOf(reference, func(p *flex.Product) { p.Change, p.Price = -7400, flex.FromGBPPerMWh(pounds) })
	}
	called := flex.Instruction{Span: flex.Span{From: evening, To: evening.Add(time.Hour)}, Change: -7400, Service: "dno",
		Price: flex.FromGBPPerMWh(1000), Who: "Ann", Reason: "feeder 7"}

	halfHour := func(reference string, n int, pounds float64) flex.Product {
		return productOf(reference, func(p *flex.Product) {
			p.From = evening.Add(time.Duration(n) * flex.HalfHour)
			p.To, p.Price = p.From.Add(flex.HalfHour), flex.FromGBPPerMWh(pounds)
		})
	}
	part := func(found int, kwh flex.WattHours, pounds flex.MicroPounds) flex.InstructedEvents {
		return flex.InstructedEvents{Found: found, Flex: -kwh, Revenue: pounds}
	}

	for name, of := range storetest.InOrder(map[string]asks{
		"two products": {
			products: []flex.Product{car("A", 3000), car("B", 2000)},
			want:     []flex.InstructedEvents{part(1, 7400, 22_200_000), part(1, 7400, 14_800_000)},
		},
		"two products for the same cars": { // who is sent first has them; nothing is left for the other
			products: []flex.Product{productOf("A", nil), productOf("B", nil)},
			want:     []flex.InstructedEvents{part(2, 14_800, 44_400_000), {}},
		},
		"a product and an instruction": {
			products:     []flex.Product{car("A", 3000)},
			instructions: []flex.Instruction{called},
			want:         []flex.InstructedEvents{part(1, 7400, 7_400_000), part(1, 7400, 22_200_000)},
		},
		"two products for the same cars, one after the other": {
			products: []flex.Product{halfHour("A", 0, 3000), halfHour("B", 1, 2000)},
			want:     []flex.InstructedEvents{part(2, 7400, 22_200_000), part(2, 7400, 14_800_000)},
		},
		"a product after an instruction of 30 minutes": {
			products: []flex.Product{halfHour("A", 1, 3000)},
			instructions: []flex.Instruction{func() flex.Instruction {
				in := called
				in.To, in.Change = evening.Add(30*time.Minute), -14_800
				return in
			}()},
			want: []flex.InstructedEvents{part(2, 7400, 7_400_000), part(2, 7400, 22_200_000)},
		},
	}) {
		t.Run(name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) { playTogether(t, url, of) })
		})
	}
}

func playTogether(t *testing.T, url string, of asks) {
	s, _, home, pair := openProducts(t, url)
	var products []flex.ProductID
	for _, p := range of.products {
		id := s.imports(p).ID
		products = append(products, id)
		_, _, err := s.app.Products.Answer(t.Context(), s.Org, id, home, true, "household")
		s.must(nil, nil, err)
	}

	s.plugIn(pair...)
	s.advance(s.at.Add(5*time.Minute), time.Hour)
	var ids []flex.InstructionID
	for _, in := range of.instructions {
		sent, err := s.app.Control.SendInstruction(t.Context(), s.Org, in)
		s.must(nil, nil, err)
		ids = append(ids, sent.ID)
	}

	s.advance(time.Date(2026, 1, 15, 23, 10, 0, 0, time.UTC), time.Hour)
	for _, car := range pair {
		s.must(nil, nil, s.app.Control.Event(t.Context(), s.Org, car, control.Event{Kind: control.PlugOut}))
	}
	s.advance(s.at.Add(time.Hour), time.Hour)
	for _, car := range pair {
		s.meter(car, flex.Day{Year: 2026, Month: time.January, Dom: 15}, 41, 42, 0)
	}
	s.advance(s.at.Add(time.Hour), time.Hour)

	for _, id := range products {
		r := s.report(id)
		if r.State == flex.ProductOver && r.Utilisation != r.Settled.Revenue {
			t.Errorf("product %s earned %d, and its events %d", r.Reference, r.Utilisation, r.Settled.Revenue)
		}
		ids = append(ids, r.Instruction)
	}

	var paid flex.MicroPounds
	for i, id := range ids {
		got := s.settled(id)
		paid += got.Revenue
		if got != of.want[i] {
			t.Errorf("%d: settled %+v, want %+v", i, got, of.want[i])
		}
	}

	s.paid(home, paid)
	if findings, err := s.app.DB.Verify(t.Context()); err != nil || len(findings) > 0 {
		t.Errorf("verify: %v, %v", findings, err)
	}
}

// TestProduct_LateSite: a site that comes after the import, or that is put under control then,
// is invited while households may accept, once, and asks nobody else again; afterwards nobody
// is.
func TestProduct_LateSite(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, b, home, _ := openProducts(t, url)
		id := s.imports(productOf("DFS-1", nil)).ID
		_, _, err := s.app.Products.Answer(t.Context(), s.Org, id, home, true, "household")
		s.must(nil, nil, err)
		if r, err := s.app.Products.InviteLateOf(t.Context(), s.Org); err != nil || r.Count != 0 {
			t.Errorf("%d invited again, %v", r.Count, err)
		}

		late := []flex.SiteID{s.Site(flex.FullScheduleMethod), s.Site(flex.FullScheduleMethod)}
		s.Asset(late[0], flex.Charger, 7400)
		s.Asset(late[1], flex.ElectricVehicle, 7400)
		s.Asset(s.Site(), flex.Charger, 7400) // nothing is controlled there
		s.advance(s.at.Add(5*time.Minute), time.Hour)

		want := flex.ProductAnswers{Invited: 6, Answered: 1, TakesPart: 1}
		if r := s.report(id); r.Answers != want {
			t.Errorf("%+v, want %+v", r.Answers, want)
		}
		for _, site := range append(late, home) {
			if got := b.of(site); got != "open" {
				t.Errorf("%s was sent %q", site, got)
			}
		}
		_, _, err = s.app.Products.Answer(t.Context(), s.Org, id, late[1], true, "household")
		s.must(nil, nil, err)

		s.advance(time.Date(2026, 1, 15, 17, 10, 0, 0, time.UTC), time.Hour) // answers end
		s.Asset(s.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		if r, err := s.app.Products.InviteLate(t.Context()); err != nil || r.Count != 0 {
			t.Errorf("%d invited after answers ended, %v", r.Count, err)
		}
	})
}
