package store_test

import "testing"

// A mail that cannot be read, as it was changed or is under another key, delays no other: it
// waits, and says why.
func TestTakeMail_Unread(t *testing.T) {
	eachQueue(t, func(q *queue) {
		q.add("broken")
		q.Exec(`UPDATE mail SET text = $1`, "\x0f1broken")
		q.add("whole")

		q.claim(2, "whole")
		if s := q.state(); s.Retrying != 1 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}

		q.now = q.now.Add(queueLease)
		q.claim(2, "whole")
	})
}
