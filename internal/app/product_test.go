package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// inbox keeps what a client is told of products.
type inbox struct {
	mu   sync.Mutex
	said []map[string]any
}

func (b *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Flexd-Kind") != "invitation" {
		return
	}
	text, _ := io.ReadAll(r.Body)
	var one map[string]any
	_ = json.Unmarshal(text, &one)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, one)
}

// of are the states that a site was told of a product, and how often.
func (b *inbox) of(site flex.SiteID) (states string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.said {
		if one["site_id"] == site.String() {
			states += one["status"].(string) + " "
		}
	}
	return strings.TrimSpace(states)
}

// product asks for 14.8 kW less from 20:00 to 21:00 on a Thursday in winter.
func productOf(reference string, change func(*flex.Product)) flex.Product {
	evening := time.Date(2026, 1, 15, 20, 0, 0, 0, time.UTC)
	p := flex.Product{
		Reference: reference, Service: "dfs", Span: flex.Span{From: evening, To: evening.Add(time.Hour)}, Change: -14_800,
		Price: flex.FromGBPPerMWh(3000), Availability: flex.FromGBPPerMWh(10), Baseline: "mid_8_of_10", Who: "Ann",
		AnswerBy: evening.Add(-170 * time.Minute), // the cars' plans have the window then
	}
	if change != nil {
		change(&p)
	}
	return p
}

// openProducts is a street with a site of two chargers, whose evenings were metered, and a
// client that receives products.
func openProducts(t *testing.T, url string) (s *clocked, b *inbox, home flex.SiteID, pair []flex.AssetID) {
	b = &inbox{}
	endpoint := httptest.NewServer(b)
	t.Cleanup(endpoint.Close)
	s = openClocked(t, url, time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC), endpoint.URL)
	t.Cleanup(func() { s.app.Close() })
	s.must(s.app.Push.SetEndpoint(t.Context(), s.Org, flex.InvitationEndpoint, delivery.Settings{URL: endpoint.URL}))
	home = s.Site(flex.FullScheduleMethod)
	pair = []flex.AssetID{s.Asset(home, flex.Charger, 7400), s.Asset(home, flex.Charger, 7400)}
	s.Consent(time.UnixMicro(2))
	s.meterEvenings(pair, 20)
	return s, b, home, pair
}

func (s *clocked) plugIn(cars ...flex.AssetID) {
	s.Helper()
	for _, car := range cars {
		s.must(nil, nil, s.app.Control.Event(s.T.Context(), s.Org, car, control.Event{Kind: control.PlugIn,
			Intent: &flex.Intent{Need: 29_600, ReadyBy: s.at.Add(6 * time.Hour), Mode: flex.Minimise}}))
	}
}

func (s *clocked) imports(p flex.Product) product.Imported {
	s.Helper()
	done, err := s.app.Products.Import(s.T.Context(), s.Org, []flex.Product{p})
	if err != nil || len(done) != 1 {
		s.Fatalf("imported %+v, %v", done, err)
	}
	return done[0]
}

func (s *clocked) report(id flex.ProductID) product.Report {
	s.Helper()
	r, err := s.app.Products.Report(s.T.Context(), s.Org, id, flex.SiteID{}, 100)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// TestProduct_FromInvitationToMoney: four sites are invited to a product, one accepts, its two
// cars alone are called, and what their meters say is settled by the product's baseline and at
// its price.
func TestProduct_FromInvitationToMoney(t *testing.T) {
	for baseline, want := range map[string]earned{
		"mid_8_of_10": {-14_800, 44_400_000, 148_000, 1},
		"":            {-13_320, 39_960_000, 133_200, 0.9}, // by the terms: the mean
	} {
		t.Run("by "+baseline, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) { playProduct(t, url, baseline, want) })
		})
	}
}

// earned is what a product comes to.
type earned struct {
	flex         flex.WattHours
	utilisation  flex.MicroPounds
	availability flex.MicroPounds
	delivered    float64
}

func playProduct(t *testing.T, url, baseline string, want earned) {
	{
		s, b, home, pair := openProducts(t, url)
		other := s.chargers[0]
		first := s.imports(productOf("DFS-1", func(p *flex.Product) { p.Baseline = baseline }))
		if first.Act != product.New || first.Invited != 4 {
			t.Errorf("%s, %d invited", first.Act, first.Invited)
		}
		if again := s.imports(productOf("DFS-1", func(p *flex.Product) { p.Baseline = baseline })); again.Act != product.Unchanged || again.ID != first.ID {
			t.Errorf("imported again it is %s", again.Act)
		}

		// One of the days that it is compared with has no use: the mean would be a tenth lower.
		yesterday := flex.Day{Year: 2026, Month: time.January, Dom: 14}
		for _, car := range pair {
			s.meter(car, yesterday, 41, 42, 0)
		}
		s.plugIn(append([]flex.AssetID{other}, pair...)...)
		_, _, err := s.app.Products.Answer(t.Context(), s.Org, first.ID, home, true, "household")
		s.must(nil, nil, err)
		s.advance(time.Date(2026, 1, 15, 19, 45, 0, 0, time.UTC), time.Hour)
		if got := b.of(home); got != "open" {
			t.Errorf("the client was told %q", got)
		}

		r := s.report(first.ID)
		if r.State != flex.ProductSent || r.Answers != (flex.ProductAnswers{Invited: 4, Answered: 1, TakesPart: 1}) {
			t.Fatalf("%s, %+v, %s", r.State, r.Answers, r.Problem)
		}
		sent, err := s.app.Control.ReportInstruction(t.Context(), s.Org, r.Instruction)
		if err != nil || len(sent.Assets) != 2 || sent.Assets[0].SiteID != home || sent.Assets[1].SiteID != home {
			t.Fatalf("called %+v, %v", sent.Assets, err)
		}

		s.advance(time.Date(2026, 1, 15, 23, 10, 0, 0, time.UTC), time.Hour)
		for _, car := range append([]flex.AssetID{other}, pair...) {
			s.must(nil, nil, s.app.Control.Event(t.Context(), s.Org, car, control.Event{Kind: control.PlugOut}))
		}
		s.advance(s.at.Add(time.Hour), time.Hour)
		day := flex.Day{Year: 2026, Month: time.January, Dom: 15}
		for _, car := range pair {
			s.meter(car, day, 41, 42, 0)
		}
		s.advance(s.at.Add(time.Hour), time.Hour)

		// 2 x 7.4 kWh less at £3 a kWh, and 14.8 kW for an hour at £10 a MW.
		r = s.report(first.ID)
		got := earned{r.Settled.Flex, r.Utilisation, r.Availability, r.Delivered()}
		if r.State != flex.ProductOver || got != want {
			t.Errorf("%s: %+v, want %+v", r.State, got, want)
		}
		s.paid(home, want.utilisation)
		if findings, err := s.app.DB.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("verify: %v, %v", findings, err)
		}
	}
}

// paid holds that a household's share of what it was asked for, half of it, was credited to
// the penny.
func (s *clocked) paid(home flex.SiteID, utilisation flex.MicroPounds) {
	s.Helper()
	credited := flex.Pence(s.Count(`SELECT sum(c.credited) FROM event_credit c JOIN flex_event e ON e.id = c.flex_event_id
		WHERE e.site_id = $1 AND e.instructed IS NOT NULL`, home.Bytes()))
	if want := (utilisation / 2).Pence(); credited != want {
		s.Errorf("credited %d p, want %d", credited, want)
	}
}

// TestProduct_Failed: what could not be sent is refused when it is imported again, with the
// same terms and with others, and says why; another reference, and one of a GSP group that
// there is not, are looked at by themselves.
func TestProduct_Failed(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, _, _, _ := openProducts(t, url)
		failed := s.imports(productOf("DNO-1", nil))
		s.must(nil, nil, s.app.DB.Write(t.Context(), s.Org, func(tx *store.Tx) error {
			_, err := tx.ProductDone(t.Context(), failed.ID, flex.InstructionID{}, "no group is named")
			return err
		}))

		for _, again := range []flex.Product{failed.Product, productOf("DNO-1", func(p *flex.Product) { p.OptOut = !p.OptOut })} {
			_, err := s.app.Products.Import(t.Context(), s.Org, []flex.Product{again})
			if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "failed (no group is named)") {
				t.Errorf("what failed is imported again: %v", err)
			}
		}

		if other := s.imports(productOf("DNO-2", nil)); other.Act != product.New {
			t.Errorf("another reference: %s", other.Act)
		}
		nowhere := productOf("DNO-3", func(p *flex.Product) { p.Scope.GSPGroup = "_Q" })
		_, err := s.app.Products.Import(t.Context(), s.Org, []flex.Product{nowhere})
		if flex.KindOf(err) != flex.Malformed {
			t.Errorf("a GSP group that there is not: %v", err)
		}
	})
}

// TestProduct_OptOut: who is invited by opt-out takes part until they refuse, while it binds
// too; withdrawn, it binds nobody.
func TestProduct_OptOut(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, b, home, pair := openProducts(t, url)
		p := s.imports(productOf("DNO-1", func(p *flex.Product) { p.OptOut = true }))
		changed := s.imports(productOf("DNO-1", func(p *flex.Product) { p.OptOut, p.Price = true, flex.FromGBPPerMWh(100) }))
		if changed.Act != product.Changed || changed.ID != p.ID {
			t.Errorf("changed: %s, %s", changed.Act, changed.ID)
		}

		s.plugIn(append([]flex.AssetID{s.chargers[0]}, pair...)...)
		s.advance(time.Date(2026, 1, 15, 20, 10, 0, 0, time.UTC), time.Hour)
		calls := func(site flex.SiteID) (n int) {
			r, err := s.app.Control.ReportInstruction(t.Context(), s.Org, s.report(p.ID).Instruction)
			if err != nil {
				t.Fatal(err)
			}

			for _, a := range r.Assets {
				if a.SiteID == site && a.ReleasedAt.IsZero() {
					n++
				}
			}
			return n
		}

		answer := func(takesPart bool) error {
			_, _, err := s.app.Products.Answer(t.Context(), s.Org, p.ID, home, takesPart, "household")
			return err
		}

		if calls(home) == 0 {
			t.Fatalf("nobody is called: %+v", s.report(p.ID))
		}
		s.must(nil, nil, answer(false))
		if n := calls(home); n != 0 {
			t.Errorf("%d cars of who refused are called", n)
		}

		if err := answer(true); flex.KindOf(err) != flex.Conflict {
			t.Errorf("accepted after answers ended: %v", err)
		}
		s.advance(s.at.Add(5*time.Minute), time.Minute)
		if n := calls(home); n != 0 {
			t.Errorf("%d cars of who refused are called again", n)
		}

		w, err := s.app.Products.Withdraw(t.Context(), s.Org, p.ID, "Ann")
		if err != nil || w.State(s.at) != flex.ProductWithdrawn {
			t.Errorf("%s: %v", w.State(s.at), err)
		}
		in, err := s.app.Control.ReportInstruction(t.Context(), s.Org, w.Instruction)
		if err != nil || in.StoppedAt.IsZero() {
			t.Errorf("its instruction goes on: %v", err)
		}
		s.advance(s.at.Add(5*time.Minute), time.Minute)
		if got := b.of(home); got != "open withdrawn" { // the first terms were replaced before they were sent
			t.Errorf("the client was told %q", got)
		}

		for _, again := range []flex.Product{w, productOf("DNO-1", nil)} { // with the same terms, and with others
			_, err = s.app.Products.Import(t.Context(), s.Org, []flex.Product{again})
			if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "was withdrawn at") {
				t.Errorf("what was withdrawn is imported again: %v", err)
			}
		}
	})
}
