package access

import (
	"context"
	"runtime"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/signin"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// together writes, and has something begin before what was written is committed: on PostgreSQL it waits for that, or is done.
func together(t *testing.T, s *Service, url string, write func(*store.All) error, do func() error) {
	t.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	done, locks := make(chan error, 1), storetest.At(t, s.DB, url)

	err := s.DB.WriteAll(t.Context(), func(all *store.All) error {
		if err := write(all); err != nil {
			return err
		}

		go func() { done <- do() }()
		for s.DB.Engine() == "postgres" && len(done) == 0 && locks.Count(waiting) == 0 {
			runtime.Gosched()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// One view is saved twice at once: the second takes the place of the first.
func TestSaveView_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := &Service{DB: storetest.Open(t, url, store.Options{})}
		who := loggedIn(t, s)
		v := SavedView{Name: "Late", Path: "/console/assets?state=plugged_in"}

		first := func(all *store.All) error { return addView(t.Context(), all, who, v) }
		together(
			t,
			s,
			url,
			first,
			func() error { return s.SaveView(context.Background(), who, v) },
		)

		views, err := s.SavedViews(t.Context(), who)
		if err != nil || len(views) != 1 {
			t.Errorf("%d views of one name (%v)", len(views), err)
		}
	})
}

// A code for logins is set up in two windows. Both may begin, a code of a secret that was replaced confirms no other one, and once one
// is confirmed a request that began before takes it away no more.
func TestTwoStep_TwoWindows(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		ctx, now := t.Context(), time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		s := &Service{DB: storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})}
		who := loggedIn(t, s)

		var setup TwoStepSetup
		first := func(all *store.All) error { return beginTwoStep(ctx, all, who, "JBSWY3DPEHPK3PXP") }
		begin := func() error {
			var err error
			setup, err = s.BeginTwoStep(context.Background(), who)
			return err
		}
		together(t, s, url, first, begin)

		code := func() string {
			t.Helper()
			text, err := codeOf(setup.Secret, now.Unix()/int64(codeStep/time.Second))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}

		if err := s.takeCode(ctx, who.ID, code()); err != nil {
			t.Fatal(err)
		}
		if err := begin(); err != nil {
			t.Fatal(err)
		}
		err := s.DB.WriteAll(ctx, func(all *store.All) error { return confirmTwoStep(ctx, all, who, nil) })
		if flex.KindOf(err) != flex.Conflict {
			t.Errorf("a code of another secret confirmed it: %v", err)
		}

		if _, err := s.ConfirmTwoStep(ctx, who, code()); err != nil {
			t.Fatal(err)
		}
		if err := begin(); flex.KindOf(err) != flex.Conflict {
			t.Errorf("begun once it is confirmed: %v", err)
		}
		if ids, err := s.TwoStepOperators(ctx); err != nil || len(ids) != 1 {
			t.Errorf("logins of %d operators ask for a code (%v)", len(ids), err)
		}
	})
}

// A request that began before its operator got a new password adds no passkey, and no code, afterwards.
func TestSetOperatorPassword_RequestBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := &Service{DB: storetest.Open(t, url, store.Options{})}
		who := loggedIn(t, s)
		if _, err := s.SetOperatorPassword(t.Context(), "ada", ""); err != nil {
			t.Fatal(err)
		}

		err := s.keepPasskey(
			t.Context(),
			who,
			store.Passkey{ID: []byte{1}, Operator: who.ID, Name: "key", PublicKey: []byte{1}},
		)
		if flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("a passkey: %v", err)
		}
		if _, err := s.BeginTwoStep(t.Context(), who); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("a code: %v", err)
		}

		keys, err := s.PasskeysOf(t.Context(), who.ID)
		if err != nil || len(keys) != 0 {
			t.Errorf("%d passkeys are left (%v)", len(keys), err)
		}
	})
}

// Somebody new signs in at the identity provider in two windows at once: both come in, as one operator.
func TestKeepPerson_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := &Service{DB: storetest.Open(t, url, store.Options{})}
		s.SSO = &SingleSignOn{Provider: signin.New(signin.Settings{Issuer: "https://id.example.com"})}
		ada := signin.Person{Subject: "1", Name: "ada"}

		var ids [2]flex.OperatorID
		come := func(window int) func(*store.All) error {
			return func(all *store.All) error {
				var err error
				ids[window], err = s.keepPerson(
					context.Background(),
					all,
					nil,
					ada,
					Viewer,
				)
				return err
			}
		}
		together(
			t,
			s,
			url,
			come(0),
			func() error { return s.DB.WriteAll(context.Background(), come(1)) },
		)

		if ids[0] != ids[1] || ids[0].IsZero() {
			t.Errorf("they are the operators %s and %s", ids[0], ids[1])
		}
	})
}
