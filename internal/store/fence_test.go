package store_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// lateBy is how long a process was stopped: past every lease here.
const lateBy = 2 * queueLease

// end is how an attempt at something that was claimed ends: with a problem or none, to be tried
// again or not.
type end struct {
	problem string
	again   bool
}

// A process that was stopped past its lease and goes on, after another did the work, writes
// nothing: neither that it was given up, nor that it is to be tried again, nor that it was
// done once more.
func TestJobs_StoppedProcess(t *testing.T) {
	const notes = `SELECT 'mail ' || text || recipient || error FROM mail
		UNION ALL SELECT 'alert ' || COALESCE(sent_at, 0) || ' ' || COALESCE(lost_at, 0) || ' ' || tries || error FROM alert_message
		UNION ALL SELECT 'notice ' || body || COALESCE(sent_at, 0) || ' ' || COALESCE(lost_at, 0) || ' ' || tries || error FROM adr_notice
		UNION ALL SELECT 'job ' || kind || COALESCE(due_at, 0) || ' ' || lease || ' ' || attempts || error FROM job ORDER BY 1`

	for name, late := range map[string]end{
		"gives up":   {problem: "late"},
		"tries anew": {problem: "late", again: true},
		"done":       {},
	} {
		for _, theirs := range []end{{}, {problem: "refused"}, {problem: "busy", again: true}} {
			t.Run(name+" after "+theirs.problem, func(t *testing.T) {
				eachQueue(t, func(q *queue) {
					q.queueEach()
					mine := q.claimEach()
					q.now = q.now.Add(lateBy)
					their := q.claimEach()
					claimed := q.Strings(notes)
					q.finishEach(mine, late)
					q.same(claimed, q.Strings(notes), "while another is at it")

					q.finishEach(their, theirs)
					done := q.Strings(notes)
					q.now = q.now.Add(time.Second)
					q.finishEach(mine, late)
					q.same(done, q.Strings(notes), "after another was")
				})
			})
		}
	}
}

func (q *queue) same(want, got []string, when string) {
	q.Helper()

	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			q.Errorf("%s the late one made of %q: %q", when, want, got)
			return
		}
	}
}

// claims are one of each kind that is noted in a table of its own.
type claims struct {
	mail   store.Mail
	alert  store.AlertMessage
	notice store.ADRNotice
}

// queueEach queues one of each kind.
func (q *queue) queueEach() {
	q.Helper()
	q.add("subject")

	q.all(func(all *store.All) error {
		r := store.AlertRoute{Name: "night", Kind: "webhook", Target: "https://example.com/", Level: "critical"}
		if err := all.AddAlertRoute(q.Context(), &r); err != nil {
			return err
		}

		return all.QueueAlertMessage(q.Context(), flex.Alert{}, r.ID, "test")
	})

	err := q.db.Write(q.Context(), q.Org, func(tx *store.Tx) error {
		o := flex.ADRObject{Kind: flex.ADRSubscription, Document: "{}"}
		if err := tx.AddADRObject(q.Context(), &o); err != nil {
			return err
		}

		return tx.QueueADRNotice(q.Context(), store.ADRNotice{Subscription: o.ID, URL: "https://example.com/", Body: "text"})
	})

	if err != nil {
		q.Fatal(err)
	}
}

// claimEach claims what queueEach queued.
func (q *queue) claimEach() (c claims) {
	q.Helper()
	c.mail = q.claim(1, "subject")[0]

	q.all(func(all *store.All) error {
		alerts, err := all.TakeAlertMessages(q.Context(), 1, queueLease)
		if err != nil {
			return err
		}

		notices, _, err := all.TakeADRNotices(q.Context(), 1, queueLease)
		if len(alerts) != 1 || len(notices) != 1 {
			q.Fatalf("claimed %d messages of alerts and %d notices, %v", len(alerts), len(notices), err)
		}

		c.alert, c.notice = alerts[0], notices[0]

		return err
	})

	return c
}

// finishEach ends the attempts at what was claimed.
func (q *queue) finishEach(c claims, e end) {
	q.Helper()
	at := q.now.Add(time.Hour)

	q.all(func(all *store.All) error {
		if e.again {
			return all.MailAgain(q.Context(), c.mail, at, e.problem)
		}
		return all.MailDone(q.Context(), c.mail, e.problem)
	})

	q.all(func(all *store.All) error {
		if e.again {
			return all.AlertMessageAgain(q.Context(), c.alert, at, e.problem)
		}
		return all.AlertMessageDone(q.Context(), c.alert, e.problem)
	})

	q.all(func(all *store.All) error {
		if e.again {
			return all.ADRNoticeAgain(q.Context(), c.notice, at, e.problem)
		}
		return all.ADRNoticeDone(q.Context(), c.notice, e.problem)
	})
}

// A notice that is gone, or whose subscription is, is claimed once: nothing is sent, and its
// job ends.
func TestTakeADRNotices_Gone(t *testing.T) {
	for table, lost := range map[string]int{"adr_notice": 0, "adr_object": 1} {
		t.Run(table, func(t *testing.T) {
			eachQueue(t, func(q *queue) {
				q.queueEach()
				q.Exec("DELETE FROM " + table)

				for _, want := range []int{1, 0} {
					q.all(func(all *store.All) error {
						due, taken, err := all.TakeADRNotices(q.Context(), 10, queueLease)
						if len(due) != 0 || taken != want {
							q.Errorf("took %d notices, %v due, want %d", taken, due, want)
						}

						return err
					})
					q.now = q.now.Add(lateBy)
				}

				if n := q.Count("SELECT COUNT(*) FROM job WHERE kind = 'openadr'"); n != 0 {
					q.Errorf("%d jobs are left", n)
				}
				if n := q.Count("SELECT COUNT(*) FROM adr_notice WHERE lost_at IS NOT NULL"); n != lost {
					q.Errorf("%d notices are given up, want %d", n, lost)
				}
			})
		})
	}
}

// A notice that was claimed and not attempted is due again at once, and the next claim is its
// first attempt. One that another has claimed since stays as it is.
func TestADRNoticesUntried(t *testing.T) {
	eachQueue(t, func(q *queue) {
		q.queueEach()
		first := q.claimEach().notice
		untried := func(n store.ADRNotice) {
			q.Helper()
			q.all(func(all *store.All) error {
				return all.ADRNoticesUntried(q.Context(), []store.ADRNotice{n})
			})
		}

		untried(first)
		for _, want := range []int{1, 0} {
			q.all(func(all *store.All) error {
				due, taken, err := all.TakeADRNotices(q.Context(), 1, queueLease)
				if taken != want || taken == 1 && due[0].Tries != 1 {
					q.Errorf("took %d, want %d: %+v", taken, want, due)
				}

				return err
			})
			untried(first)
		}
	})
}

// What an OpenADR server answered to who asked it a turn ago is not noted over what the next heard.
func TestADRUpstream_StoppedProcess(t *testing.T) {
	eachQueue(t, func(q *queue) {
		o := flex.ADRObject{Kind: flex.ADRProgram, Name: "grid", Document: "{}"}
		err := q.db.Write(q.Context(), q.Org, func(tx *store.Tx) error {
			if err := tx.AddADRObject(q.Context(), &o); err != nil {
				return err
			}

			return tx.AddADRUpstream(q.Context(), &store.ADRUpstream{
				Program: o.ID, Name: "grid", URL: "https://example.com/", Poll: queueLease, Silence: time.Hour,
			})
		})
		if err != nil {
			q.Fatal(err)
		}

		take := func() (u store.ADRUpstream) {
			q.all(func(all *store.All) error {
				due, err := all.TakeADRUpstreams(q.Context())
				if len(due) != 1 {
					q.Fatalf("took %d servers, %v", len(due), err)
				}

				u = due[0]

				return err
			})

			return u
		}

		mine := take()
		q.now = q.now.Add(lateBy)
		theirs := take()
		theirs.HeardAt = q.now
		q.all(func(all *store.All) error { return all.ADRUpstreamAsked(q.Context(), &theirs) })

		mine.Error = "late"
		q.all(func(all *store.All) error { return all.ADRUpstreamAsked(q.Context(), &mine) })

		err = q.db.Read(q.Context(), q.Org, func(tx *store.Tx) error {
			kept, err := tx.ADRUpstreams(q.Context(), o.ID)
			if len(kept) != 1 || kept[0].Error != "" || !kept[0].HeardAt.Equal(q.now) {
				q.Errorf("kept %+v, %v, want what was heard at %s", kept, err, q.now)
			}

			return err
		})
		if err != nil {
			q.Fatal(err)
		}
	})
}
