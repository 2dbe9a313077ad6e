package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// queue is a store on a clock of its own, with a site whose user is mailed.
type queue struct {
	*testing.T
	*storetest.Seed
	db   *store.DB
	now  time.Time
	site flex.SiteID
}

const queueLease = time.Minute

func eachQueue(t *testing.T, test func(q *queue)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		q := &queue{T: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
		q.db = storetest.Open(t, url, store.Options{Now: func() time.Time { return q.now }})
		q.Seed = storetest.NewSeed(t, q.db, url)
		q.site = q.Site()
		test(q)
	})
}

func (q *queue) add(subjects ...string) {
	q.Helper()

	for _, subject := range subjects {
		err := q.db.Write(q.Context(), q.Org, func(tx *store.Tx) error {
			return tx.AddMail(q.Context(), store.Mail{SiteID: q.site, To: "ann@example.com", Subject: subject, Text: "text"})
		})
		if err != nil {
			q.Fatal(err)
		}

		q.now = q.now.Add(time.Second)
	}
}

func (q *queue) all(fn func(all *store.All) error) {
	q.Helper()
	if err := q.db.WriteAll(q.Context(), fn); err != nil {
		q.Fatal(err)
	}
}

// claim claims mails and compares their subjects, in their order.
func (q *queue) claim(limit int, want ...string) []store.Mail {
	q.Helper()
	var mails []store.Mail
	q.all(func(all *store.All) (err error) {
		mails, err = all.TakeMail(q.Context(), limit, queueLease)
		return err
	})

	got := map[string]bool{}
	for _, m := range mails {
		got[m.Subject] = true
	}

	for _, subject := range want {
		if !got[subject] {
			q.Errorf("%s was not claimed", subject)
		}
	}

	if len(mails) != len(want) {
		q.Errorf("claimed %d mails, want %v", len(mails), want)
	}

	return mails
}

func (q *queue) state() store.JobState {
	q.Helper()
	var mail store.JobState
	err := q.db.ReadAll(q.Context(), func(all *store.All) error {
		states, err := all.JobStates(q.Context())
		for _, s := range states {
			if s.Kind == store.JobMail {
				mail = s
			}
		}

		return err
	})
	if err != nil {
		q.Fatal(err)
	}

	return mail
}

// A job of an organisation that moves to another database waits, and holds up no other's.
func TestJobs_OrganisationMoves(t *testing.T) {
	eachQueue(t, func(q *queue) {
		q.add("of the one that moves")
		moves := q.Org
		other, err := q.db.AddOrg(q.Context(), "other")
		if err != nil {
			q.Fatal(err)
		}

		q.Seed = q.As(other.ID)
		q.site = q.Site()
		q.add("of the other")

		number, err := q.db.Leave(q.Context(), moves, "new")
		if err != nil {
			q.Fatal(err)
		}
		q.claim(1, "of the other")

		if err := q.db.Stay(q.Context(), moves, number); err != nil {
			q.Fatal(err)
		}
		q.claim(1, "of the one that moves")
	})
}

// Jobs of tokens whose site is gone leave the one behind them to be refreshed at once.
func TestJobs_TokensGone(t *testing.T) {
	eachQueue(t, func(q *queue) {
		sites := []flex.SiteID{q.site, q.Site(), q.Site()}
		for _, site := range sites {
			q.all(func(all *store.All) error {
				return all.PutCloudToken(q.Context(), store.CloudToken{Org: q.Org, Site: site, Provider: "volvo", Refresh: "r", TurnAt: q.now})
			})
			q.now = q.now.Add(time.Second)
		}
		q.Exec(`DELETE FROM cloud_token WHERE site_id <> $1`, sites[2].Bytes())

		q.all(func(all *store.All) error {
			tokens, err := all.ClaimCloudTokens(q.Context(), 1, queueLease)
			if err == nil && (len(tokens) != 1 || tokens[0].Site != sites[2]) {
				q.Errorf("claimed %d tokens, not the one that is left", len(tokens))
			}
			return err
		})
	})
}

// A job is claimed once in its lease, the longest due first, and again when the lease is over;
// who comes back after that changes nothing.
func TestJobs_Lease(t *testing.T) {
	eachQueue(t, func(q *queue) {
		q.add("first", "second", "third")
		mine := q.claim(2, "first", "second")
		q.claim(2, "third")
		q.claim(2)

		q.now = q.now.Add(queueLease - time.Microsecond)
		q.claim(2)
		q.now = q.now.Add(time.Microsecond)
		theirs := q.claim(5, "first", "second", "third")
		for _, m := range theirs {
			if m.Tries != 2 {
				q.Errorf("%s is at its attempt %d", m.Subject, m.Tries)
			}
		}

		// The first claimer comes back late.
		q.all(func(all *store.All) error { return all.MailAgain(q.Context(), mine[0], q.now, "late") })

		if s := q.state(); s.Due != 0 || s.Retrying != 0 || s.Later != 3 {
			q.Errorf("after a late retry: %+v", s)
		}

		for _, m := range theirs {
			q.all(func(all *store.All) error { return all.MailDone(q.Context(), m, "") })
		}

		if n := q.Count(`SELECT count(*) FROM job`); n != 0 {
			q.Errorf("%d jobs are left", n)
		}
	})
}

// A job whose attempt fails is due again at the instant that was said, or stays as failed for
// good, to be seen until its retention is over.
func TestJobs_Failure(t *testing.T) {
	eachQueue(t, func(q *queue) {
		q.add("notice")
		m := q.claim(1, "notice")[0]
		again := q.now.Add(time.Hour)
		q.all(func(all *store.All) error { return all.MailAgain(q.Context(), m, again, "the relay is down") })

		if s := q.state(); s.Later != 1 || s.Retrying != 1 || s.Failed != 0 {
			q.Errorf("after a failure: %+v", s)
		}

		q.now = again.Add(-time.Microsecond)
		q.claim(1)
		q.now = again
		m = q.claim(1, "notice")[0]
		failed := q.now
		q.all(func(all *store.All) error { return all.MailDone(q.Context(), m, "the address is refused") })

		want := store.JobState{Kind: store.JobMail, Failed: 1, FailedAt: failed, Error: "the address is refused"}
		if s := q.state(); s != want {
			q.Errorf("failed for good: %+v, want %+v", s, want)
		}

		q.now = q.now.Add(time.Hour)
		q.claim(1)

		if n := q.Count(`SELECT count(*) FROM mail WHERE text <> '' OR recipient <> ''`); n != 0 {
			q.Error("a mail that was given up keeps its text")
		}

		for before, left := range map[time.Time]int{failed: 1, failed.Add(time.Microsecond): 0} {
			q.all(func(all *store.All) error {
				_, err := all.DropFailedJobs(q.Context(), before, 10)
				return err
			})

			if n := q.Count(`SELECT count(*) FROM job`); left == 0 && n != 0 {
				q.Errorf("%d failed jobs are left", n)
			}
		}
	})
}

// A job is committed with what makes it necessary, or not at all; and a claim that is rolled back
// was none.
func TestJobs_RolledBack(t *testing.T) {
	eachQueue(t, func(q *queue) {
		stop := errors.New("stop")
		err := q.db.Write(q.Context(), q.Org, func(tx *store.Tx) error {
			if err := tx.AddMail(q.Context(), store.Mail{SiteID: q.site, To: "ann@example.com", Subject: "never"}); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}

		q.claim(1)

		q.add("notice")
		err = q.db.WriteAll(q.Context(), func(all *store.All) error {
			if _, err := all.TakeMail(q.Context(), 1, queueLease); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}

		q.claim(1, "notice")

		// The laws see a mail without its job, and a job that failed and says nothing.
		for _, planted := range []string{`DELETE FROM job`, `INSERT INTO job (kind, org_id, subject, lease, queued_at) SELECT 'mail', org_id, id, 1, 1 FROM mail`} {
			if planted[0] == 'I' && q.db.Engine() == "postgres" {
				planted = strings.Replace(planted, "org_id, id, 1", "org_id, uuid_send(id), 1", 1)
			}
			q.Exec(planted)
			if findings, err := q.db.Verify(q.Context()); err != nil || len(findings) == 0 {
				q.Errorf("%s: %v, %v", planted, findings, err)
			}
		}
		q.Exec(`DELETE FROM job`)
		q.Exec(`UPDATE mail SET recipient = ''`)
	})
}

// A mail that a process of the release before queued in the mail's own row is sent as well, once.
func TestJobs_FormerMail(t *testing.T) {
	eachQueue(t, func(q *queue) {
		q.Exec(`INSERT INTO mail (id, org_id, site_id, recipient, subject, text, queued_at, turn_at) VALUES ($1, $2, $3, 'ann@example.com', 'former', 'text', $4, $4)`,
			q.site.Bytes(), q.Org.Bytes(), q.site.Bytes(), q.now.UnixMicro())
		m := q.claim(5, "former")[0]
		q.claim(5)
		q.all(func(all *store.All) error { return all.MailDone(q.Context(), m, "") })
	})
}

// Two processes that claim at once never claim the same job.
func TestJobs_TwoProcesses(t *testing.T) {
	url := storetest.Postgres(t)
	a := storetest.Open(t, url, store.Options{})
	b := storetest.Open(t, url, store.Options{})
	seed := storetest.NewSeed(t, a, url)
	site := seed.Site()
	const mails = 200
	err := a.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
		for range mails {
			if err := tx.AddMail(t.Context(), store.Mail{SiteID: site, To: "ann@example.com", Subject: "notice"}); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	claims := make(chan [16]byte, 2*mails)
	failed := make(chan error, 2)

	for _, db := range []*store.DB{a, b} {
		go func() {
			for idle := false; !idle; {
				err := db.WriteAll(t.Context(), func(all *store.All) error {
					claimed, err := all.TakeMail(t.Context(), 7, time.Hour)
					idle = len(claimed) == 0

					for _, m := range claimed {
						claims <- m.ID
					}

					return err
				})
				if err != nil {
					failed <- err
					return
				}
			}

			failed <- nil
		}()
	}

	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}

	close(claims)

	seen := map[[16]byte]bool{}

	for id := range claims {
		if seen[id] {
			t.Errorf("mail %x was claimed twice", id)
		}
		seen[id] = true
	}

	if len(seen) != mails {
		t.Errorf("%d mails were claimed, want %d", len(seen), mails)
	}
}
