package grid

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/envelope"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// behindFuse has assets share a main fuse.
func (g *gathering) behindFuse(fuse flex.Watts, assets ...flex.AssetID) {
	site := &fusedSite{fuse: fuse}
	g.fused = append(g.fused, site)
	for _, id := range assets {
		g.behind[id] = behind{site, envelope.OnAll}
	}
}

// TestEnvelope_FusePhases has two cars of 7.4 kW behind a main fuse of 3 x 25 A, which carries 5.75 kW a phase, and one elsewhere. Each
// needs 14.8 kWh from 00:00 to 05:00. On one phase that is more than it carries until then, so that all half-hours are needed.
func TestEnvelope_FusePhases(t *testing.T) {
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	one, unknown, three := flex.Wiring{Phases: 1, Phase: 1}, flex.Wiring{Phases: 1}, flex.Wiring{Phases: 3}

	for name, c := range map[string]struct {
		a, b  flex.Wiring
		to    time.Duration
		least flex.WattHours // of all three
		most  flex.WattHours
	}{
		"both on L1":            {one, one, 30 * time.Minute, 2875, 2875 + 3700},
		"nobody knows":          {unknown, unknown, 30 * time.Minute, 2875, 2875 + 3700},
		"L1 and nobody knows":   {one, unknown, 30 * time.Minute, 2875, 2875 + 3700},
		"L1 and L3":             {one, flex.Wiring{Phases: 1, Phase: 3}, 30 * time.Minute, 0, 2*2875 + 3700},
		"both on three":         {three, three, 30 * time.Minute, 0, 3 * 3700},
		"L1 and three":          {one, three, 30 * time.Minute, 0, 3700 + (8625-3700)/3 + 1 + 3700},
		"more than L1 carries":  {one, one, 5 * time.Hour, 28_750 + 14_800, 28_750 + 14_800},
		"as much on two phases": {one, flex.Wiring{Phases: 1, Phase: 2}, 5 * time.Hour, 3 * 14_800, 3 * 14_800},
	} {
		t.Run(name, func(t *testing.T) {
			g := gather(evening)

			site := &fusedSite{fuse: 17_250, phases: 3}
			g.fused = append(g.fused, site)
			g.behind[flex.AssetID{1}] = behind{site, envelope.LineOf(site.phases, c.a)}
			g.behind[flex.AssetID{2}] = behind{site, envelope.LineOf(site.phases, c.b)}
			for id := range byte(3) {
				g.add(unplanned(night(id + 1)))
			}
			g.share()

			for _, w := range g.envelope(flex.Scope{}).Windows {
				same := w.From.Equal(midnight) && w.To.Equal(midnight.Add(c.to))
				if same && (w.Least != c.least || w.Most != c.most) {
					t.Errorf("%d to %d Wh, not %d to %d", w.Least, w.Most, c.least, c.most)
				}
			}
		})
	}
}

// TestEnvelope_Fuse has two cars of 7.4 kW behind a main fuse of 10 kW, and one elsewhere. Each needs 14.8 kWh from
// 00:00 to 05:00: 29.6 kWh behind a fuse that carries 5 kWh in a half-hour.
func TestEnvelope_Fuse(t *testing.T) {
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		fuse     flex.Watts
		from, to time.Duration
		least    flex.WattHours // of all three
		most     flex.WattHours
	}{
		"a half-hour":                     {10_000, 0, 30 * time.Minute, 0, 5000 + 3700},
		"an hour":                         {10_000, time.Hour, 2 * time.Hour, 0, 10_000 + 7400},
		"all of the night":                {10_000, 0, 5 * time.Hour, 3 * 14_800, 3 * 14_800},
		"a fuse that all have room under": {20_000, 0, 30 * time.Minute, 0, 3 * 3700},
		"a fuse that carries no need":     {4_000, 0, 5 * time.Hour, 20_000 + 14_800, 20_000 + 14_800},
		"before the cheap hours":          {10_000, -time.Hour, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := gather(evening)
			g.behindFuse(c.fuse, flex.AssetID{1}, flex.AssetID{2})

			for id := range byte(3) {
				g.add(unplanned(night(id + 1)))
			}
			g.share()

			for _, w := range g.envelope(flex.Scope{}).Windows {
				same := w.From.Equal(midnight.Add(c.from)) && w.To.Equal(midnight.Add(c.to))
				if same && (w.Least != c.least || w.Most != c.most) {
					t.Errorf("%d to %d Wh, not %d to %d", w.Least, w.Most, c.least, c.most)
				}
			}
		})
	}
}

// TestEnvelope_FuseShort counts a car once that cannot have what it needs, neither by its time nor behind its fuse.
func TestEnvelope_FuseShort(t *testing.T) {
	hour := flex.Span{From: evening, To: evening.Add(80 * time.Minute)}
	g := gather(evening)
	g.behindFuse(10_000, flex.AssetID{1}, flex.AssetID{2})
	for id := range byte(2) {
		g.add(&store.Plugged{
			AssetID: flex.AssetID{id + 1}, Planned: true, Power: 7400, Need: 10_000, ReadyBy: hour.To, Steps: []flex.Step{{Span: hour}},
			Tariff: flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
		})
	}
	g.share()

	e := g.envelope(flex.Scope{})
	if whole := e.Windows[HalfHours-1]; e.Short != 2 || whole.Least != 13_333 || whole.Most != 13_333 {
		t.Errorf("%d short of 2, %d to %d Wh", e.Short, whole.Least, whole.Most)
	}
}

// unplanned is a car whose schedule has no charging.
func unplanned(p *store.Plugged) *store.Plugged {
	for i := range p.Steps {
		p.Steps[i].Limit = 0
	}
	return p
}

// TestFollow_Fuse asks two cars behind a fuse for what it carries, and for a watt-hour more.
func TestFollow_Fuse(t *testing.T) {
	midnight := flex.PeriodAt(time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC))
	for energy, want := range map[flex.WattHours]bool{5000: true, 5001: false} {
		g := gather(evening)
		g.behindFuse(10_000, flex.AssetID{1}, flex.AssetID{2})
		g.add(unplanned(night(1)))
		g.add(unplanned(night(2)))
		g.share()
		asked, joules, err := g.profile([]Asked{{midnight, energy}})
		if err != nil {
			t.Fatal(err)
		}

		f := g.follow(flex.Scope{}, asked, joules)
		c := f.Certificate
		if f.Yes != want {
			t.Errorf("%d Wh: %v", energy, f.Yes)
		}

		if !want && (!c.TooMuch || c.Bound != 5000 || c.Asked != energy || len(c.HalfHours) != 1) {
			t.Errorf("%d Wh: %+v", energy, c)
		}
	}
}

// TestFollow_FuseParts asks two cars of 7.4 kW behind a fuse of 10 kW and one elsewhere for all that they can draw in a half-hour, and all that
// they need by 05:00: the two together have no part beyond their fuse.
func TestFollow_FuseParts(t *testing.T) {
	g := gather(evening)
	g.behindFuse(10_000, flex.AssetID{1}, flex.AssetID{2})
	for id := range byte(3) {
		g.add(unplanned(night(id + 1)))
	}
	g.share()

	midnight := flex.PeriodAt(time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC))
	var profile []Asked
	for i, energy := range []flex.WattHours{8700, 8700, 8700, 8700, 5000, 4600} {
		profile = append(profile, Asked{midnight.Add(i), energy})
	}

	asked, joules, err := g.profile(profile)
	if err != nil {
		t.Fatal(err)
	}

	f := g.follow(flex.Scope{}, asked, joules)
	if !f.Yes {
		t.Fatal(f.Certificate)
	}

	for i, a := range profile {
		shared := f.Parts[0].Energy[i] + f.Parts[1].Energy[i]
		if sum := shared + f.Parts[2].Energy[i]; sum != a.Energy || shared > 5001 {
			t.Errorf("%v: %d Wh of %d, %d of them behind the fuse", a.Period, sum, a.Energy, shared)
		}
	}
}

// TestEnvelope_FuseOfOthers has a car that can draw only from 00:00 to 01:00, where its fuse carries 10 kWh: another of the site that needs
// 14.8 kWh cannot leave out as much of the later hours as it could alone.
func TestEnvelope_FuseOfOthers(t *testing.T) {
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	g := gather(evening)
	g.behindFuse(10_000, flex.AssetID{1}, flex.AssetID{2})
	early := unplanned(night(1))
	early.ReadyBy = midnight.Add(time.Hour)
	early.Need = early.Delivered + 7400
	g.add(early)
	g.add(unplanned(night(2)))
	g.share()

	for _, w := range g.envelope(flex.Scope{}).Windows {
		if w.From.Equal(midnight.Add(time.Hour)) && w.To.Equal(midnight.Add(5*time.Hour)) && w.Least != 14_800-2600 {
			t.Errorf("at least %d Wh from 01:00 on, and 2600 can be drawn before", w.Least)
		}
	}
}

// TestEnvelope_FusePlan shows that a plan which keeps its fuses and meets its needs is within the bounds of every window,
// and that no half-hour has more than fuses and chargers carry.
func TestEnvelope_FusePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := gather(evening)
		fuse := flex.Watts(rapid.IntRange(3680, 30_000).Draw(t, "fuse"))
		g.behindFuse(fuse, flex.AssetID{0}, flex.AssetID{1})
		g.fused[0].phases = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "phases")
		for id := range byte(2) {
			wired := flex.Wiring{Phases: rapid.SampledFrom([]int{1, 3}).Draw(t, "on"), Phase: rapid.IntRange(0, 3).Draw(t, "phase")}
			g.behind[flex.AssetID{id}] = behind{g.fused[0], envelope.LineOf(g.fused[0].phases, wired)}
		}

		others := flex.Watts(0)
		for i := range rapid.IntRange(0, 4).Draw(t, "cars") {
			p := plugged(t)
			p.AssetID = flex.AssetID{byte(i)}
			p.Need = flex.WattHours(rapid.Int64Range(0, int64(total(p))).Draw(t, "need"))
			if len(p.Steps) == 0 {
				continue
			}
			if i > 1 {
				others += p.Power
			}

			g.add(p)
		}

		g.share()
		e := g.envelope(flex.Scope{})
		if err := outside(e); err != nil {
			t.Fatal(err)
		}

		for _, h := range e.HalfHours {
			carried := (fuse + others).For(h.Len()) + 1
			if g.fused[0].phases == 3 { // a plan may pass one phase and leave the others
				carried += h.Planned
			}
			if h.Most > max(carried, h.Planned+others.For(h.Len())+1) {
				t.Fatalf("%v: %d Wh behind what carries %d, planned are %d", h.Span, h.Most, carried, h.Planned)
			}
		}
	})
}
