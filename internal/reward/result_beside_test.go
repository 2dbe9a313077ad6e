package reward_test

import (
	"context"
	"runtime"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// The bank's answer is taken by two at once: one moves the payment, and for the other nothing
// changes. Neither is refused.
func TestImport_AtOnce(t *testing.T) {
	for _, name := range []string{"results", "bank's file"} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				y := open(t, url)
				y.earn(t, 25)
				w := y.ask(t, bank, 1000)
				if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
					t.Fatal(err)
				}

				f := y.export(t, false)
				moved, failed := make(chan int, 2), make(chan error, 2)

				take := func() {
					ctx := context.Background()

					var done reward.Imported
					var err error
					if name == "results" {
						done, err = y.service.Import(ctx, y.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: ledger.Posted}})
					} else {
						var b reward.BankImport
						b, err = y.service.ImportBank(ctx, y.org, "ann", []bankfile.Result{bankSays(f.Payments[0].Reference, bankfile.Paid, 1000)}, false)
						done = b.Imported
						if n := b.Count(reward.VerdictRefused); n > 0 {
							t.Errorf("%d results are refused", n)
						}
					}

					failed <- err
					moved <- done.Moved
				}

				if y.db.Engine() != "postgres" {
					take()
					take()
				} else {
					gate := storetest.At(t, y.db, url).ShutGate()
					defer gate.Open()

					for i := range 2 {
						go take()
						for len(moved)+gate.Waiting() <= i {
							runtime.Gosched()
						}
					}
					gate.Open()
				}

				for range 2 {
					if err := <-failed; err != nil {
						t.Error(err)
					}
				}
				if n := <-moved + <-moved; n != 1 || y.status(t, w) != ledger.Posted {
					t.Errorf("the payment was moved %d times, and is %s", n, y.status(t, w))
				}
				y.sound(t)
			})
		})
	}
}
