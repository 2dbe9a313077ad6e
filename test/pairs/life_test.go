// Package pairs_test runs every two operations of an organisation's life at once, and holds what comes of it against
// what comes of one after the other.
package pairs_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/books"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/product"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// process is a flexd at work: a store of its own with the services on it.
type process struct {
	db       *store.DB
	registry *registry.Service
	control  *control.Service
	reading  *reading.Service
	reward   *reward.Service
	books    *books.Service
	push     *delivery.Service
	product  *product.Service
	adr      *adr.Service
	access   *access.Service
}

func newProcess(db *store.DB) *process {
	c := &control.Service{DB: db}
	return &process{
		db: db, registry: &registry.Service{DB: db}, control: c, reading: &reading.Service{DB: db}, reward: &reward.Service{DB: db},
		books: &books.Service{DB: db}, push: &delivery.Service{DB: db}, product: &product.Service{DB: db, Control: c}, adr: &adr.Service{DB: db},
		access: &access.Service{DB: db},
	}
}

// life is an organisation in the middle of its life, and what the operations need to know of it.
type life struct {
	now   time.Time
	names map[string]string // of records, by their ids

	org, other                flex.OrgID
	home, payer, debtor, user flex.SiteID
	left                      flex.SiteID // was offboarded
	charger, spare, battery   flex.AssetID
	paid                      flex.AssetID // of the payer
	visit, payerVisit         reward.Visit
	pending, approved, sent   flex.TransactionID
	instruction               flex.InstructionID
	held                      flex.HeldID
	program                   flex.ADRObjectID
	ann                       flex.OperatorID
	file                      []byte // of an organisation that lives elsewhere

	mu   sync.Mutex
	said []string // what operations answered beside an error
}

// says notes what an operation answered.
func (l *life) says(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, fmt.Sprintf(format, args...))
}

// saids is what operations answered since they were asked last.
func (l *life) saids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.said
	l.said = nil
	return said
}

const (
	homePoint  = "1012345678900"
	payerPoint = "1012345678919"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t
}

// builder makes a life.
type builder struct {
	*testing.T
	*life
	*process
	seed *storetest.Seed
}

func (b *builder) must(_ any, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *builder) name(name string, id interface{ Bytes() []byte }) {
	b.names[hexOf(id.Bytes())] = name
}

// begin makes the life in an empty store, and leaves the clock at its present. What is not of the kind that plays is left out.
func begin(t *testing.T, url string, of kind) *life {
	t.Helper()
	l := &life{now: at("2026-01-12 09:00"), names: map[string]string{}}
	db := storetest.Fresh(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return l.now }})
	b := &builder{T: t, life: l, process: newProcess(db), seed: storetest.At(t, db, url)}
	b.organisation()
	b.homes()

	b.metered()
	b.money()
	b.present()
	b.of(of)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	if db.Engine() == "sqlite" { // so that all of it is in one file
		b.seed.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	return l
}

// organisation makes two organisations, what they pay, the metering points that are known, and prices.
func (b *builder) organisation() {
	b.Helper()
	made, err := b.db.AddOrg(b.Context(), "acme")
	b.must(nil, err)
	b.org = made.ID
	made, err = b.db.AddOrg(b.Context(), "bravo")
	b.must(nil, err)
	b.other = made.ID
	b.name("org", b.org)

	b.name("other org", b.other)
	b.must(nil, b.db.Write(b.Context(), b.org, func(tx *store.Tx) error {
		for name, value := range map[string]string{"user_share": "0.5", "credit_pence_per_kwh": "1000", "certainty": "0"} {
			if err := tx.PutTerm(b.Context(), flex.Term{Name: name, Value: value}); err != nil {
				return err
			}
		}
		return tx.SetSettings(b.Context(), flex.OrgSettings{Payout: flex.PayoutSettings{WithoutCode: true, CoolingHours: flex.Some(0), TwoAbove: flex.Some(flex.Pence(1500))}})
	}))

	from := flex.DayAt(b.now)
	b.must(nil, b.db.WriteAll(b.Context(), func(all *store.All) error {
		var prices []flex.PricedPeriod
		for p := from.Period(1); p.Before(from.Add(6).Period(1)); p = p.Add(1) {
			prices = append(prices, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(100 + float64(p.Start().Hour())), Known: true})
		}

		span := flex.Span{From: prices[0].Period.Start(), To: prices[len(prices)-1].Period.End()}
		if _, err := all.AddPublication(b.Context(), store.Publication{Source: "test", PublishedAt: b.now, Span: span}, prices); err != nil {
			return err
		}
		var meters []flex.Meter
		for _, mpan := range []string{homePoint, payerPoint} {
			meters = append(meters, flex.Meter{MPAN: mpan, Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "YO1 7HH", Address: mpan[10:] + " MILL LANE"})
		}
		return all.PutMeters(b.Context(), meters)
	}))
}

// place registers a home with its devices.
func (b *builder) place(name, mpan, email string, assets ...registry.AssetInput) (flex.SiteID, []flex.AssetID) {
	b.Helper()
	in := registry.SiteInput{MPAN: mpan, Postcode: "YO1 7HH", Address: "1 " + name + " Lane", Email: email, ConsentAt: b.now.Add(-time.Hour)}
	if mpan == "" {
		site := b.seed.As(b.org).Site(flex.FullScheduleMethod)
		b.name(name, site)
		for _, a := range assets {
			b.must(b.registry.CreateAsset(b.Context(), b.org, site, a))
		}
		return site, nil
	}

	o, err := b.registry.Initialise(b.Context(), b.org, in, assets)
	b.must(nil, err)
	b.name(name, o.Site.ID)
	var ids []flex.AssetID
	for _, a := range o.Assets {
		ids = append(ids, a.ID)
		b.name(a.ExternalID, a.ID)
	}
	for _, p := range flex.Propositions {
		b.must(b.registry.Enrol(b.Context(), b.org, o.Site.ID, registry.Enrolment{Proposition: p}))
	}
	return o.Site.ID, ids
}

func charger(id string) registry.AssetInput {
	return registry.AssetInput{ExternalID: id, Type: flex.Charger, AssetProperties: registry.AssetProperties{Power: new(flex.Watts(7400))}}
}

func storage(id string) registry.AssetInput {
	return registry.AssetInput{ExternalID: id, Type: flex.Battery, AssetProperties: registry.AssetProperties{Power: new(flex.Watts(3600)), Capacity: new(flex.WattHours(13500))}}
}

// homes makes the homes, one of which leaves again.
func (b *builder) homes() {
	b.Helper()
	var assets []flex.AssetID
	b.home, assets = b.place("home", homePoint, "home@example.com", charger("charger"), charger("spare"), storage("battery"))
	b.charger, b.spare, b.battery = assets[0], assets[1], assets[2]
	b.payer, assets = b.place("payer", payerPoint, "payer@example.com", charger("paid"))
	b.paid = assets[0]
	b.debtor, _ = b.place("debtor", "", "")

	b.left, _ = b.place("left", "", "", charger("gone"))
	b.must(b.books.Give(b.Context(), b.org, books.ManualPosting{SiteID: b.left, Kind: books.Goodwill, Amount: 321, Reason: "a gift", By: "ada"}))
	_, _, err := b.registry.Offboard(b.Context(), b.org, b.left)
	b.must(nil, err)
	site, err := b.registry.UserSite(b.Context(), b.org, "u1", "user@example.com", b.now.Add(-time.Hour))
	b.must(nil, err)
	b.user = site.ID
	b.name("user", b.user)
}

// energy is what a charger drew in some half-hours.
func energy(asset flex.AssetID, from string, kwh ...float64) (batch []reading.Input) {
	for i, v := range kwh {
		p := flex.PeriodAt(at(from)).Add(i)
		batch = append(batch, reading.Input{AssetID: asset, Span: p.Span(), Label: flex.ChargerEnergy, Value: v})
	}
	return batch
}

func (b *builder) take(batch []reading.Input) {
	b.Helper()
	verdicts, err := b.reading.Store(b.Context(), b.org, batch)
	b.must(nil, err)
	for _, v := range verdicts {
		if !v.Accepted() && !strings.HasPrefix(string(v), "held back") {
			b.Fatal(v)
		}
	}
}

// stay plugs a car in and out.
func (b *builder) stay(asset flex.AssetID, from, to string) {
	b.Helper()
	b.now = at(from)
	b.must(nil, b.control.Event(b.Context(), b.org, asset, control.Event{Kind: control.PlugIn}))
	b.now = at(to)
	b.must(nil, b.control.Event(b.Context(), b.org, asset, control.Event{Kind: control.PlugOut}))
}

// metered has two cars charge, a pause that is over, and readings of it; what a meter cannot have read is held.
func (b *builder) metered() {
	b.Helper()
	b.stay(b.charger, "2026-01-13 10:00", "2026-01-13 12:00")
	b.stay(b.paid, "2026-01-13 13:00", "2026-01-13 15:00")
	b.take(energy(b.charger, "2026-01-13 10:00", 3, 3, 3, 3))
	b.take(energy(b.paid, "2026-01-13 13:00", 3, 3, 3, 3))
	b.now = at("2026-01-14 09:00")
	b.must(b.reward.SettleSessions(b.Context()))

	b.must(nil, b.db.Write(b.Context(), b.org, func(tx *store.Tx) error {
		evening := flex.Day{Year: 2026, Month: 1, Dom: 14}
		var before []flex.Reading
		for back := 1; back <= 20; back++ {
			for n := 35; n <= 36; n++ {
				before = append(before, flex.Reading{AssetID: b.charger, Span: evening.Add(-back).Period(n).Span(), Label: flex.ChargerEnergy, Value: 3_700_000})
			}
		}

		a, err := tx.Asset(b.Context(), b.charger)
		if err != nil {
			return err
		}
		if err := tx.SetPause(b.Context(), a, flex.Span{From: evening.Period(35).Start(), To: evening.Period(36).End()}, 0); err != nil {
			return err
		}
		return tx.PutReadings(b.Context(), before)
	}))

	b.now = at("2026-01-15 09:00")
	b.take(energy(b.charger, "2026-01-14 17:00", 0))
	for i, kwh := range []float64{100, 101, 5} { // the last is of another meter
		when := at("2026-01-14 20:00").Add(time.Duration(i) * time.Hour)
		b.take([]reading.Input{{AssetID: b.charger, Span: flex.Span{From: when, To: when}, Label: flex.ChargerRegister, Value: kwh}})
	}

	held := b.seed.Strings(`SELECT ` + b.hexed("id") + ` FROM held_reading`)
	if len(held) != 1 {
		b.Fatalf("%d readings are held", len(held))
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.ToLower(held[0]), "-", ""))
	b.must(nil, err)
	b.held = flex.HeldID(raw)
	b.name("held", b.held)
}

func (b *builder) hexed(column string) string {
	if b.db.Engine() == "postgres" {
		return "CAST(" + column + " AS TEXT)"
	}
	return "hex(" + column + ")"
}

var account = reward.BankAccount{Name: "Ann Other", SortCode: "123456", Number: "01234567"}

// open opens the balance page of a site.
func (b *builder) open(site flex.SiteID) reward.Visit {
	b.Helper()
	link, _, err := b.reward.Link(b.Context(), b.org, site, reward.LinkOptions{RedirectURI: "https://app.example.com/rewards", MayPayOut: true})
	b.must(nil, err)
	v, err := b.reward.Open(b.Context(), link[strings.LastIndex(link, "/")+1:], "")
	b.must(nil, err)
	b.must(nil, b.reward.LinkAccount(b.Context(), v, account))
	return v
}

// money has three payments of a home at three stages, and a home that owes.
func (b *builder) money() {
	b.Helper()
	b.now = at("2026-01-15 17:50")
	b.visit, b.payerVisit = b.open(b.home), b.open(b.payer)
	for i, id := range []*flex.TransactionID{&b.sent, &b.approved, &b.pending} {
		w, err := b.reward.Withdraw(b.Context(), b.payerVisit, 1000, fmt.Sprint("form", i))
		b.must(nil, err)
		*id = w.ID
		b.name([]string{"sent", "approved", "pending"}[i], w.ID)
		if id == &b.pending {
			break
		}

		for _, by := range []string{"ann", "bob"} {
			if _, err := b.reward.Decide(b.Context(), b.org, w.ID, ledger.Approved, by, ""); err != nil && by == "ann" {
				b.Fatal(err)
			}
		}
		if id == &b.sent {
			b.must(b.reward.Export(b.Context(), b.org, "ann", reward.ExportOptions{}))
		}
	}

	b.must(nil, b.db.Write(b.Context(), b.org, func(tx *store.Tx) error {
		t := ledger.Booked{}
		t.Key, t.Kind, t.SiteID, t.Settled, t.Cause = "debt", ledger.FlexEvent, b.debtor, flex.DayAt(b.now).Add(-3), ledger.Cause{By: "test"}
		t.Postings = ledger.EarnedInPart(-118, -59, 0, -59)
		_, err := tx.Post(b.Context(), &t)
		return err
	}))
}

// present is where the operations begin: a car is plugged in, and an instruction is out.
func (b *builder) present() {
	b.Helper()
	b.now = at("2026-01-15 18:00")
	b.must(nil, b.control.Event(b.Context(), b.org, b.charger, control.Event{Kind: control.PlugIn, Intent: intent(20)}))
	made, err := b.adr.Create(b.Context(), adr.Client{Org: b.org, ID: "bl", Business: true}, flex.ADRProgram, map[string]any{"programName": "peak"})
	b.must(nil, err)
	b.program = made.ID
	b.name("program", b.program)
	p, err := b.control.SendInstruction(b.Context(), b.org, flex.Instruction{Span: flex.Span{From: at("2026-01-15 20:00"), To: at("2026-01-15 21:00")}, Change: -1000, Service: "dno", Who: "ada"})
	b.must(nil, err)
	b.instruction = p.ID
	b.name("instruction", b.instruction)
}

// kind is which operations play.
type kind string

const (
	ofOrganisation kind = "an organisation"
	ofCapped       kind = "a fleet under caps"
	ofOperators    kind = "operators"
)

var kinds = []kind{ofOrganisation, ofCapped, ofOperators}

const annsPassword = "a password of ann's"

// of makes what some operations are about.
func (b *builder) of(k kind) {
	b.Helper()
	switch k {
	case ofOrganisation:
		b.elsewhere()
	case ofCapped:
		b.must(nil, b.control.SetCaps(b.Context(), b.org, flex.Caps{
			Fleet:  flex.Cap{Power: new(flex.Watts(9000))},
			Groups: []flex.CapGroup{{Name: "feeder", Cap: flex.Cap{Power: new(flex.Watts(8000))}, Sites: []flex.SiteID{b.home, b.payer}}},
		}))
		b.must(b.control.PlanDueOf(b.Context(), b.org))
	case ofOperators:
		b.operators()
	}
}

// elsewhere makes the file of an organisation that lives in another store, and is the party of the payer's metering point there.
func (b *builder) elsewhere() {
	b.Helper()
	db := storetest.Fresh(b.T, storetest.SQLite(b.T), store.Options{Environment: flex.Sandbox, Now: func() time.Time { return b.now }})
	there := &builder{T: b.T, life: &life{now: b.now, names: b.names}, process: newProcess(db)}
	made, err := db.AddOrg(b.Context(), "carol")
	b.must(nil, err)
	there.org = made.ID
	b.name("carol", made.ID)
	there.must(nil, db.WriteAll(b.Context(), func(all *store.All) error {
		m := flex.Meter{MPAN: payerPoint, Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "YO1 7HH", Address: "3 MILL LANE"}
		return all.PutMeters(b.Context(), []flex.Meter{m})
	}))

	there.place("carol's", payerPoint, "carol@example.com", charger("carol's charger"))
	var file bytes.Buffer
	there.must(nil, db.ReadAll(b.Context(), func(all *store.All) error {
		_, err := all.ExportOrg(b.Context(), made.ID, &file)
		return err
	}))
	b.file = file.Bytes()
	there.must(nil, db.Close())
}

// operators has ann, who is logged in and has two passkeys, and ada.
func (b *builder) operators() {
	b.Helper()
	for _, name := range []string{"ann", "ada"} {
		b.must(b.access.AddOperator(b.Context(), name, annsPassword, access.Admin))
	}

	b.must(nil, b.db.WriteAll(b.Context(), func(all *store.All) error {
		o, err := all.OperatorNamed(b.Context(), "ann")
		b.ann = o.ID
		for _, key := range []string{"one", "two"} {
			if err == nil {
				err = all.AddPasskey(b.Context(), store.Passkey{ID: []byte(key), Operator: o.ID, Name: key, PublicKey: []byte(key)})
			}
		}
		return err
	}))
	b.name("ann", b.ann)
	b.must(b.access.LoginOperator(b.Context(), "ann", annsPassword, "192.0.2.1"))
}

func intent(kwh float64) *flex.Intent {
	return &flex.Intent{Need: flex.FromKWh(kwh), ReadyBy: at("2026-01-16 07:00"), Mode: flex.Minimise}
}

func hexOf(id []byte) string { return hex.EncodeToString(id) }
