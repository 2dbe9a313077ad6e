package access

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestBrake_Names counts an address that tries many names, each within its own pace.
func TestBrake_Names(t *testing.T) {
	var b brake
	now := time.Unix(0, 0)
	try := func(i int, from string) bool {
		_, err := b.attempt(fmt.Sprint("name", i), from, now)
		return err == nil
	}

	for i := range 2 * widePace.burst {
		if try(i, "bad") != (i < widePace.burst) {
			t.Fatalf("attempt %d", i)
		}
	}

	if !try(0, "good") {
		t.Error("another address is braked")
	}

	now = now.Add(3 * widePace.interval)
	for i := range 5 {
		if try(1000+i, "bad") != (i < 3) {
			t.Errorf("attempt %d after three intervals", i)
		}
	}
}

// TestBrake_ClockSetBack: whoever tried to log in while the clock was ahead is slowed down as before once it is right.
func TestBrake_ClockSetBack(t *testing.T) {
	var b brake
	now := time.Unix(0, 0)
	for range narrowPace.burst + 1 {
		b.attempt("name", "from", now.Add(time.Hour))
	}

	var err error
	for range 3 {
		_, err = b.attempt("name", "from", now)
		wait, slowed := errors.AsType[*Wait](err)
		if slowed && wait.After > narrowPace.interval {
			t.Errorf("the next attempt waits for %s", wait.After)
		}

		now = now.Add(narrowPace.interval)
	}

	if err != nil {
		t.Errorf("two intervals later: %v", err)
	}
}

// TestViewLog_ClockSetBack: a look at the same is written down again where the clock was set back since the last.
func TestViewLog_ClockSetBack(t *testing.T) {
	var l viewLog
	now := time.Unix(10_000, 0)
	what := viewed{who: "ada", act: "view a site"}
	l.note(what, now)
	if l.fresh(what, now.Add(time.Minute)) || !l.fresh(what, now.Add(-time.Hour)) {
		t.Error("the look of a minute ago is written down again, or that of an hour that was none is not")
	}
}

// TestBrake_Full shows that what is remembered stays bounded.
func TestBrake_Full(t *testing.T) {
	var b brake
	now := time.Unix(0, 0)
	for i := range brakeMax + 10 {
		b.attempt("name", fmt.Sprint(i), now)
	}

	if len(b.due) > brakeMax {
		t.Errorf("%d keys", len(b.due))
	}

	now = now.Add(time.Hour)
	for i := range brakeMax + 10 {
		b.attempt("name", fmt.Sprint("later", i), now)
	}

	if len(b.due) > brakeMax {
		t.Errorf("%d keys an hour later", len(b.due))
	}
}

func TestCaches_Full(t *testing.T) {
	var c tokenCache
	now := time.Unix(0, 0)
	for i := range cacheMax + 10 {
		c.put([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, Principal{}, now)
	}

	if len(c.held) > cacheMax {
		t.Errorf("%d tokens", len(c.held))
	}

	if _, ok := c.get([32]byte{255, 255, 255}, now); ok {
		t.Error("a token that was never put is there")
	}

	n := cacheMax
	last := [32]byte{byte(n), byte(n >> 8), byte(n >> 16)}
	if _, ok := c.get(last, now.Add(cacheTime-1)); !ok {
		t.Error("a token is gone before its time")
	}

	if _, ok := c.get(last, now.Add(cacheTime)); ok {
		t.Error("a token is believed for too long")
	}
}

// FuzzIdentify reads tokens that nobody was given: whatever is sent is refused, and nothing
// that could not be a token costs a look-up.
func FuzzIdentify(f *testing.F) {
	for _, seed := range []string{"", "flexd_", tokenMark + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "\x00", "flexd_é"} {
		f.Add(seed)
	}
	d := &Service{DB: storetest.Open(f, storetest.SQLite(f), store.Options{})}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := d.Identify(t.Context(), flex.Secret(text)); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// TestLogin_Busy shows that only so many logins wait for their turn, that one that is turned
// away is not counted as a guess, and that a secret that needs no turn still lets in.
func TestLogin_Busy(t *testing.T) {
	d := &Service{DB: storetest.Open(t, storetest.SQLite(t), store.Options{})}
	_, made, err := d.AddOrg(t.Context(), "Made", "made", "")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"chosen", "fresh"} {
		if _, _, err := d.AddOrg(t.Context(), name, name, "correct horse"); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := d.Login(t.Context(), "chosen", "correct horse", "a"); err != nil {
		t.Fatal(err)
	}

	for i := range waitersMax - 1 {
		credentialGuesses.enter(fmt.Sprint("many", i/waitersOfAddress))
	}

	if _, err := d.Login(t.Context(), "fresh", "wrong", "a"); !errors.Is(err, errLogin) {
		t.Errorf("the last that may wait: %v", err)
	}

	credentialGuesses.enter("last")
	for range 2 * narrowPace.burst {
		_, err := d.Login(t.Context(), "fresh", "correct horse", "a")
		if w, ok := errors.AsType[*Wait](err); !ok || w.After != time.Second || !errors.Is(err, errBusy) {
			t.Fatalf("one too many: %v", err)
		}
	}

	for name, secret := range map[string]flex.Secret{"made": made, "chosen": "correct horse"} {
		if _, err := d.Login(t.Context(), name, secret, "a"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	for i := range waitersMax - 1 {
		credentialGuesses.leave(fmt.Sprint("many", i/waitersOfAddress))
	}

	credentialGuesses.leave("last")
	gone, leave := context.WithCancel(t.Context())
	credentialGuesses.verifiers <- struct{}{}
	leave()
	if _, err := credentialGuesses.verify(gone, "x", nil, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone still waits: %v", err)
	}

	<-credentialGuesses.verifiers
	if _, err := d.Login(t.Context(), "fresh", "correct horse", "a"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
