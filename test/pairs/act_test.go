package pairs_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"slices"
	"time"

	"flexd/internal/access"
	"flexd/internal/adr"
	"flexd/internal/books"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// act is an operation of an organisation's life.
type act struct {
	name string
	do   func(ctx context.Context, p *process, l *life) error
}

// drop leaves an operation's result away.
func drop[T any](_ T, err error) error { return err }

func take(ctx context.Context, p *process, l *life, batch []reading.Input) error {
	verdicts, err := p.reading.Store(ctx, l.org, batch)
	for _, v := range verdicts {
		if !v.Accepted() {
			return flex.Fail(flex.Malformed, "%s", v)
		}
	}
	return err
}

// acts are the operations of a kind; those of an organisation's life are most of them at one home.
func acts(of kind) []act {
	switch of {
	case ofCapped:
		return underCaps()
	case ofOperators:
		return ofPeople()
	}
	return slices.Concat(atSite(), atAsset(), ofMoney(), ofFleet(), ofFiles())
}

// underCaps are operations that the caps of a fleet have to do with.
func underCaps() []act {
	names := []string{
		"merge the home", "offboard", "create an asset", "change the charger", "delete the charger", "intend", "plug out", "plug the spare in",
		"plug the payer in", "charge now", "set caps", "limit a group", "instruct", "stop the instruction", "plan batteries", "plan what is due",
	}
	return slices.DeleteFunc(slices.Concat(atSite(), atAsset(), ofFleet()), func(a act) bool { return !slices.Contains(names, a.name) })
}

// ofFiles are operations on all of an organisation's records.
func ofFiles() []act {
	return []act{
		{"export the organisation", func(ctx context.Context, p *process, l *life) error {
			return p.db.ReadAll(ctx, func(all *store.All) error {
				f, err := all.ExportOrg(ctx, l.org, io.Discard)
				for _, t := range f.Tables {
					l.says("exported %s: %d", t.Table, t.Rows)
				}
				return err
			})
		}},
		{"import an organisation", func(ctx context.Context, p *process, l *life) error {
			open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(l.file)), nil }
			return drop(p.db.ImportOrg(ctx, open, false))
		}},
	}
}

// ofPeople are operations on the accounts of operators.
func ofPeople() []act {
	return []act{
		{"add an operator", func(ctx context.Context, p *process, l *life) error {
			return drop(p.access.AddOperator(ctx, "bob", "a password of bob's", access.Viewer))
		}},
		{"change the password", func(ctx context.Context, p *process, l *life) error {
			return drop(p.access.SetOperatorPassword(ctx, "ann", "another password of ann's"))
		}},
		{"remove the operator", func(ctx context.Context, p *process, l *life) error {
			return p.access.RemoveOperator(ctx, "ann")
		}},
		{"change the role", func(ctx context.Context, p *process, l *life) error {
			return p.access.SetOperatorRole(ctx, "ann", access.Viewer)
		}},
		{"bind to an organisation", func(ctx context.Context, p *process, l *life) error {
			return p.access.SetOperatorOrgs(ctx, "ann", access.OperatorOrgs{Names: []string{"bravo"}})
		}},

		{"unbind", func(ctx context.Context, p *process, l *life) error {
			return p.access.SetOperatorOrgs(ctx, "ann", access.OperatorOrgs{Every: true})
		}},
		{"log in", func(ctx context.Context, p *process, l *life) error {
			return drop(p.access.LoginOperator(ctx, "ann", annsPassword, "192.0.2.2"))
		}},
		{"log out everywhere", func(ctx context.Context, p *process, l *life) error {
			return p.access.EndOperatorSessions(ctx, "ann")
		}},

		{"remove a passkey", func(ctx context.Context, p *process, l *life) error {
			return p.access.RemovePasskey(ctx, access.Operator{ID: l.ann}, base64.RawURLEncoding.EncodeToString([]byte("one")))
		}},
		{"reset the factors", func(ctx context.Context, p *process, l *life) error {
			return p.access.ResetFactors(ctx, "ann")
		}},
		{"add a passkey", func(ctx context.Context, p *process, l *life) error {
			return p.db.WriteAll(ctx, func(all *store.All) error {
				return all.AddPasskey(ctx, store.Passkey{ID: []byte("three"), Operator: l.ann, Name: "three", PublicKey: []byte("three")})
			})
		}},
	}
}

// consent is one that the home gave.
var consent = at("2026-01-15 17:59")

func homeInput() registry.SiteInput {
	return registry.SiteInput{MPAN: homePoint, Postcode: "YO1 7HH", Address: "1 home Lane", Email: "merged@example.com"}
}

func newInput() registry.SiteInput {
	return registry.SiteInput{Postcode: "YO1 7HH", Address: "9 new Lane", ConsentAt: consent, MPAN: "1012345678928"}
}

func atSite() []act {
	return []act{
		{"create a site", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.CreateSite(ctx, l.org, newInput()))
		}},
		{"merge the new site", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.Initialise(ctx, l.org, newInput(), []registry.AssetInput{charger("new")}))
		}},
		{"merge the home", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.Initialise(ctx, l.org, homeInput(), []registry.AssetInput{charger("charger"), charger("further")}))
		}},
		{"change the site", func(ctx context.Context, p *process, l *life) error {
			c := registry.SiteChange{Email: new("changed@example.com"), Supply: flex.SupplyChange{Import: new(flex.Watts(11000))}}
			return drop(p.registry.ChangeSite(ctx, l.org, l.home, c))
		}},
		{"date the site's capacity", func(ctx context.Context, p *process, l *life) error {
			c := registry.SiteChange{Supply: flex.SupplyChange{Import: new(flex.Watts(12000))}, SupplyFrom: registry.Dating{From: flex.DayAt(l.now).Add(-1)}}

			return drop(p.registry.ChangeSite(ctx, l.org, l.home, c))
		}},
		{"change the tariff", func(ctx context.Context, p *process, l *life) error {
			start, end := flex.WallTime(time.Hour), flex.WallTime(5*time.Hour)
			c := registry.SiteChange{Tariff: &flex.SiteTariff{Type: flex.DualRate, CheapStart: &start, CheapEnd: &end}}
			return drop(p.registry.ChangeSite(ctx, l.org, l.home, c))
		}},
		{"delete the debtor's site", func(ctx context.Context, p *process, l *life) error {
			return p.registry.DeleteSite(ctx, l.org, l.debtor)
		}},
		{"offboard", func(ctx context.Context, p *process, l *life) error {
			_, _, err := p.registry.Offboard(ctx, l.org, l.home)
			return err
		}},
		{"offboard the payer", func(ctx context.Context, p *process, l *life) error {
			_, _, err := p.registry.Offboard(ctx, l.org, l.payer)

			return err
		}},
		{"erase", func(ctx context.Context, p *process, l *life) error {
			return p.db.WriteAll(ctx, func(all *store.All) error { return drop(all.Erase(ctx, l.left)) })
		}},
		{"let a user in", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.UserSite(ctx, l.org, "u1", "another@example.com", time.Time{}))
		}},
		{"let a new user in", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.UserSite(ctx, l.org, "u2", "new@example.com", consent))
		}},
		{"withdraw the user's consent", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.WithdrawMeterConsent(ctx, l.org, l.user))
		}},
		{"withdraw consent", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.WithdrawMeterConsent(ctx, l.org, l.home))
		}},

		{"consent", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.GiveMeterConsent(ctx, l.org, l.home, consent))
		}},
		{"consent to discharge", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.GiveDischargeConsent(ctx, l.org, l.home, consent))
		}},
		{"withdraw consent to discharge", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.WithdrawDischargeConsent(ctx, l.org, l.home))
		}},
		{"enrol", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.Enrol(ctx, l.org, l.home, registry.Enrolment{Proposition: flex.LimitedPause, Override: true}))
		}},
		{"unenrol", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.Unenrol(ctx, l.org, l.home, flex.FullAssetSchedule))
		}},
		{"move the point", func(ctx context.Context, p *process, l *life) error {
			_, _, err := p.registry.MovePoint(ctx, homePoint, l.other, l.now)

			return err
		}},
	}
}

func event(kind control.Kind, asset func(*life) flex.AssetID, change func(*control.Event)) func(context.Context, *process, *life) error {
	return func(ctx context.Context, p *process, l *life) error {
		ev := control.Event{Kind: kind}
		if change != nil {
			change(&ev)
		}
		return p.control.Event(ctx, l.org, asset(l), ev)
	}
}

func theCharger(l *life) flex.AssetID { return l.charger }
func theSpare(l *life) flex.AssetID   { return l.spare }
func thePaid(l *life) flex.AssetID    { return l.paid }

func atAsset() []act {
	return []act{
		{"create an asset", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.CreateAsset(ctx, l.org, l.home, charger("further")))
		}},
		{"change the charger", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.ChangeAsset(ctx, l.org, l.charger, registry.AssetChange{AssetProperties: registry.AssetProperties{Power: new(flex.Watts(11000))}}))
		}},
		{"date the charger's power", func(ctx context.Context, p *process, l *life) error {
			c := registry.AssetChange{AssetProperties: registry.AssetProperties{Power: new(flex.Watts(9000))}, PowerFrom: registry.Dating{From: flex.DayAt(l.now).Add(-1)}}

			return drop(p.registry.ChangeAsset(ctx, l.org, l.charger, c))
		}},
		{"repair the charger's power", func(ctx context.Context, p *process, l *life) error {
			c := registry.AssetChange{AssetProperties: registry.AssetProperties{Power: new(flex.Watts(8000))}, PowerFrom: registry.Dating{From: flex.DayAt(l.now).Add(-2), Repair: "it was wrong"}}
			return drop(p.registry.ChangeAsset(ctx, l.org, l.charger, c))
		}},
		{"delete the spare", func(ctx context.Context, p *process, l *life) error {
			return p.registry.DeleteAsset(ctx, l.org, l.spare)
		}},
		{"create the spare at the payer", func(ctx context.Context, p *process, l *life) error {
			return drop(p.registry.CreateAsset(ctx, l.org, l.payer, charger("spare")))
		}},
		{"merge the payer with the spare", func(ctx context.Context, p *process, l *life) error {
			in := registry.SiteInput{MPAN: payerPoint, Postcode: "YO1 7HH", Address: "1 payer Lane"}

			return drop(p.registry.Initialise(ctx, l.org, in, []registry.AssetInput{charger("paid"), charger("spare")}))
		}},
		{"delete the charger", func(ctx context.Context, p *process, l *life) error {
			return p.registry.DeleteAsset(ctx, l.org, l.charger)
		}},
		{"intend", event(control.IntentUpdate, theCharger, func(ev *control.Event) { ev.Intent = intent(30) })},
		{"plug out", event(control.PlugOut, theCharger, nil)},
		{"plug the spare in", event(control.PlugIn, theSpare, func(ev *control.Event) { ev.Intent = intent(25) })},
		{"plug the payer in", event(control.PlugIn, thePaid, func(ev *control.Event) { ev.Intent = intent(25) })},
		{"charge now", event(control.ChargeNow, theCharger, func(ev *control.Event) { ev.EndAt = at("2026-01-15 23:00") })},

		{"read the pause", func(ctx context.Context, p *process, l *life) error {
			return take(ctx, p, l, energy(l.charger, "2026-01-14 17:30", 0))
		}},
		{"correct a reading", func(ctx context.Context, p *process, l *life) error {
			return take(ctx, p, l, energy(l.charger, "2026-01-13 10:00", 1, 1))
		}},
		{"replace the meter", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reading.Release(ctx, l.org, l.held, true))
		}},
		{"discard the reading", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reading.Discard(ctx, l.org, l.held))
		}},
	}
}

func decide(id func(*life) flex.TransactionID, to ledger.PaymentStatus, by string) func(context.Context, *process, *life) error {
	return func(ctx context.Context, p *process, l *life) error {
		return drop(p.reward.Decide(ctx, l.org, id(l), to, by, ""))
	}
}

func answer(to ledger.PaymentStatus) func(context.Context, *process, *life) error {
	return func(ctx context.Context, p *process, l *life) error {
		return drop(p.reward.Import(ctx, l.org, "bob", []reward.PaymentResult{{ID: l.sent, Status: to}}))
	}
}

func pendingOne(l *life) flex.TransactionID { return l.pending }

// lastMonth is the month before the life.
var lastMonth = ledger.Month{Year: 2025, Month: 12}

func ofMoney() []act {
	thisMonth := ledger.Month{Year: 2026, Month: 1}
	return []act{
		{"withdraw", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.Withdraw(ctx, l.visit, 9000, "a form"))
		}},
		{"withdraw by another form", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.Withdraw(ctx, l.visit, 8000, "another form"))
		}},
		{"link another account", func(ctx context.Context, p *process, l *life) error {
			return p.reward.LinkAccount(ctx, l.payerVisit, reward.BankAccount{Name: "Ann Other", SortCode: "654321", Number: "76543210"})
		}},
		{"approve", decide(pendingOne, ledger.Approved, "ann")},
		{"approve by another", decide(pendingOne, ledger.Approved, "bob")},
		{"reject", decide(pendingOne, ledger.Rejected, "ann")},

		{"cancel the approved", decide(func(l *life) flex.TransactionID { return l.approved }, ledger.Cancelled, "ann")},
		{"export payments", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.Export(ctx, l.org, "ann", reward.ExportOptions{}))
		}},
		{"the bank paid", answer(ledger.Posted)},
		{"the bank returns", answer(ledger.Returned)},
		{"the bank fails", answer(ledger.Failed)},
		{"write off", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.WriteOff(ctx, l.org, books.ManualPosting{SiteID: l.debtor, Amount: 59, Reason: "our mistake", By: "ada"}))
		}},
		{"give", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.Give(ctx, l.org, books.ManualPosting{SiteID: l.debtor, Kind: books.Goodwill, Amount: 30, Reason: "sorry", Reference: "r1", By: "ada"}))
		}},
		{"give to the home", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.Give(ctx, l.org, books.ManualPosting{SiteID: l.home, Kind: books.Goodwill, Amount: 30, Reason: "sorry", Reference: "r1", By: "ada"}))
		}},

		{"receive", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.Receive(ctx, l.org, books.Receipt{Counterparty: "dno", Month: thisMonth, Amount: 700, Reference: "r1", By: "ada"}))
		}},
		{"write off a receivable", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.WriteOffReceivable(ctx, l.org, books.Receipt{Counterparty: "dno", Month: thisMonth, Amount: 600, Reference: "w1", By: "ada"}, "bankrupt"))
		}},
		{"close a month", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.Close(ctx, l.org, lastMonth, "ada"))
		}},
		{"move unclaimed", func(ctx context.Context, p *process, l *life) error {
			return drop(p.books.MoveUnclaimed(ctx, l.org, "ada", "old"))
		}},

		{"settle sessions", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.SettleSessionsOf(ctx, l.org))
		}},
		{"settle events", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.SettleEventsOf(ctx, l.org))
		}},
		{"settle again", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.Resettle(ctx, l.org, reward.Resettlement{From: flex.DayAt(l.now).Add(-5), To: flex.DayAt(l.now)}))
		}},
		{"repair", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.Repair(ctx, l.org, reward.Resettlement{From: flex.DayAt(l.now).Add(-5), To: flex.DayAt(l.now)}))
		}},
		{"change terms", func(ctx context.Context, p *process, l *life) error {
			return drop(p.reward.SetTerms(ctx, l.org, map[string]string{"user_share": "0.8"}, flex.DayAt(l.now).Add(-1), "ada"))
		}},
	}
}

func ofFleet() []act {
	return []act{
		{"set caps", func(ctx context.Context, p *process, l *life) error {
			return p.control.SetCaps(ctx, l.org, flex.Caps{Fleet: flex.Cap{Power: new(flex.Watts(9000))}})
		}},
		{"limit a group", func(ctx context.Context, p *process, l *life) error {
			return p.control.ChangeCaps(ctx, l.org, func(c *flex.Caps) error {
				c.Groups = append(c.Groups, flex.CapGroup{Name: "feeder", Cap: flex.Cap{Power: new(flex.Watts(8000))}, Sites: []flex.SiteID{l.home, l.payer}})
				return nil
			})
		}},
		{"dispatch", func(ctx context.Context, p *process, l *life) error {
			d := store.Dispatch{Market: "m1", Span: flex.Span{From: at("2026-01-15 18:30"), To: at("2026-01-15 19:30")}, Assets: []store.DispatchedAsset{{ID: l.battery, Power: -3000}}}

			return drop(p.push.Dispatch(ctx, l.org, d))
		}},
		{"instruct", func(ctx context.Context, p *process, l *life) error {
			in := flex.Instruction{Span: flex.Span{From: at("2026-01-15 22:00"), To: at("2026-01-15 23:00")}, Change: -2000, Service: "dno", Who: "ada"}
			return drop(p.control.SendInstruction(ctx, l.org, in))
		}},
		{"stop the instruction", func(ctx context.Context, p *process, l *life) error {
			return drop(p.control.StopInstruction(ctx, l.org, l.instruction, "ada"))
		}},
		{"import a product", func(ctx context.Context, p *process, l *life) error {
			x := flex.Product{
				Reference: "p1", Service: "dfs", Span: flex.Span{From: at("2026-01-16 18:00"), To: at("2026-01-16 19:00")}, Change: -2000,
				Price: flex.FromGBPPerMWh(3000), Baseline: "mid_8_of_10", Who: "ada", AnswerBy: at("2026-01-16 12:00"),
			}

			return drop(p.product.Import(ctx, l.org, []flex.Product{x}))
		}},
		{"bind the program", func(ctx context.Context, p *process, l *life) error {
			return drop(p.adr.Bind(ctx, l.org, &flex.ADRBinding{Program: l.program, Service: "dno", Who: "ada"}, true))
		}},
		{"write an event", func(ctx context.Context, p *process, l *life) error {
			document := map[string]any{
				"programID": l.program.String(), "intervalPeriod": map[string]any{"start": "2026-01-15T21:00:00Z", "duration": "PT1H"},
				"intervals": []any{map[string]any{"id": 0.0, "payloads": []any{map[string]any{"type": "DISPATCH_SETPOINT_RELATIVE", "values": []any{-5.0}}}}},
			}
			return drop(p.adr.Create(ctx, adr.Client{Org: l.org, ID: "bl", Business: true}, flex.ADREvent, document))
		}},
		{"delete the program", func(ctx context.Context, p *process, l *life) error {
			return drop(p.adr.Delete(ctx, adr.Client{Org: l.org, ID: "bl", Business: true}, flex.ADRProgram, l.program))
		}},
		{"plan batteries", func(ctx context.Context, p *process, l *life) error {
			return drop(p.control.PlanBatteriesOf(ctx, l.org))
		}},
		{"plan what is due", func(ctx context.Context, p *process, l *life) error {
			return drop(p.control.PlanDueOf(ctx, l.org))
		}},
	}
}
