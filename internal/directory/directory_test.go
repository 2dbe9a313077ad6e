package directory

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// list keeps meters in memory as the store does.
type list []flex.Meter

func (l list) MetersByPostcode(_ context.Context, postcode string) (found []flex.Meter, err error) {
	for _, m := range l {
		if m.Postcode == postcode {
			found = append(found, m)
		}
	}
	return found, nil
}

func (l list) MeterByMPAN(_ context.Context, mpan string) (flex.Meter, error) {
	for _, m := range l {
		if m.MPAN == mpan {
			return m, nil
		}
	}
	return flex.Meter{}, flex.Fail(flex.NotFound, "no meter with this MPAN was found")
}

var (
	org   = flex.OrgID{1}
	other = flex.OrgID{2}
	key   = ring(7)
)

// ring is a ring of one key.
func ring(first byte) *keyring.Ring {
	r, err := keyring.NewRing([keyring.KeySize]byte{first})
	if err != nil {
		panic(err)
	}
	return r
}

func sandbox() *Directory {
	return New(Sandbox{Listed{list(SandboxMeters())}}, NewRefs(key, rand.Reader), time.Now)
}

func TestSandboxMeters(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range SandboxMeters() {
		if _, err := ParseMPAN(m.MPAN); err != nil || seen[m.MPAN] {
			t.Errorf("%s: %v", m.MPAN, err)
		}
		seen[m.MPAN] = true
	}
	for _, s := range []string{SlowMPAN, DownMPAN} {
		if _, err := ParseMPAN(s); err != nil || seen[s] {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestSearch(t *testing.T) {
	d := sandbox()
	for _, c := range []struct{ postcode, building, want string }{
		{"zz991aa", "", "1 Sandbox Street|2 Sandbox Street|3 Sandbox Street|4 Sandbox Street|5 Sandbox Street|7 Sandbox Street|Flat 1, Sand Court|Flat 2, Sand Court"},
		{"ZZ99 1AA", "5", "5 Sandbox Street"},
		{"ZZ99 1AA", "Sand Court", "Flat 1, Sand Court|Flat 2, Sand Court"},
		{"ZZ99 1AA", "99", ""},
		{"ZZ99 9ZZ", "", ""},
	} {
		found, err := d.Search(t.Context(), org, c.postcode, c.building)
		if err != nil || found == nil {
			t.Fatalf("%s: %v", c.postcode, err)
		}

		var got []string
		for _, f := range found {
			address, _, _ := strings.Cut(strings.Replace(f.Address, ", Sand", "- Sand", 1), ",")
			got = append(got, strings.Replace(address, "-", ",", 1))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s %s: %s, want %s", c.postcode, c.building, strings.Join(got, "|"), c.want)
		}
	}

	for postcode, kind := range map[string]flex.Kind{"nowhere": flex.Invalid, "": flex.Invalid, string(SlowPostcode): flex.TimedOut, string(DownPostcode): flex.Unavailable} {
		if _, err := d.Search(t.Context(), org, postcode, ""); flex.KindOf(err) != kind {
			t.Errorf("%q: %v", postcode, err)
		}
	}
	if _, err := d.Search(t.Context(), org, "ZZ99 1AA", strings.Repeat("x", MaxAddress+1)); flex.KindOf(err) != flex.Invalid {
		t.Errorf("a long building: %v", err)
	}
}

func TestSearchShowsAtMost(t *testing.T) {
	var l list
	for i := range MaxListed + 1 {
		l = append(l, meter(withCheck(fmt.Sprintf("10990001%04d", i)), fmt.Sprintf("%d Long Street", i+1), "ZZ99 1AA"))
	}

	for n, want := range map[int]int{MaxListed: MaxListed, MaxListed + 1: MaxListed} {
		d := New(Listed{l[:n]}, NewRefs(key, rand.Reader), time.Now)
		found, err := d.Search(t.Context(), org, "ZZ99 1AA", "")
		if err != nil || len(found) != want {
			t.Errorf("of %d: %d, %v", n, len(found), err)
		}
		if !strings.HasPrefix(found[1].Address, "2 Long Street, ") || !strings.HasPrefix(found[10].Address, "11 Long Street, ") {
			t.Errorf("ordered %q, %q", found[1].Address, found[10].Address)
		}
	}
}

func TestByRef(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := sandbox()
		search := func() string {
			found, err := d.Search(t.Context(), org, "ZZ99 1AA", "5")
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			return found[0].Ref
		}

		ref := search()
		if again := search(); again == ref {
			t.Error("two searches give the same reference")
		}

		if strings.Contains(ref, "109900") || strings.ContainsAny(ref, "/+=?&") {
			t.Errorf("reference %s", ref)
		}
		if m, err := d.ByRef(t.Context(), org, ref); err != nil || m.MPAN != "1099000010041" || !m.Import {
			t.Errorf("%v, %v", m, err)
		}

		if _, err := d.ByRef(t.Context(), other, ref); flex.KindOf(err) != flex.Invalid {
			t.Errorf("another organisation's reference: %v", err)
		}
		elsewhere := New(d.source, NewRefs(ring(8), rand.Reader), time.Now)
		if _, err := elsewhere.ByRef(t.Context(), org, ref); flex.KindOf(err) != flex.Invalid {
			t.Errorf("another house's reference: %v", err)
		}

		for i := range ref {
			b := []byte(ref)
			b[i] ^= 1
			if _, err := d.ByRef(t.Context(), org, string(b)); flex.KindOf(err) != flex.Invalid {
				t.Errorf("tampered at %d: %v", i, err)
			}
		}

		for _, bad := range []string{"", "x", ref[1:], ref + "A", "ref", strings.Repeat("A", 4000)} {
			if _, err := d.ByRef(t.Context(), org, bad); flex.KindOf(err) != flex.Invalid {
				t.Errorf("%.20q: %v", bad, err)
			}
		}

		time.Sleep(RefLife - time.Second)
		if _, err := d.ByRef(t.Context(), org, ref); err != nil {
			t.Errorf("a second before its end: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := d.ByRef(t.Context(), org, ref); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), "run out") {
			t.Errorf("at its end: %v", err)
		}
	})
}

func TestByMPAN(t *testing.T) {
	d := sandbox()
	if m, err := d.ByMPAN(t.Context(), "10 9900 0010 005"); err != nil || m.SupplierMPID != "FLXD" {
		t.Errorf("%v, %v", m, err)
	}
	for text, kind := range map[string]flex.Kind{
		"": flex.Invalid, "1099000010006": flex.Invalid, "1200023305967": flex.Unclear, SlowMPAN: flex.TimedOut, DownMPAN: flex.Unavailable,
	} {
		if _, err := d.ByMPAN(t.Context(), text); flex.KindOf(err) != kind {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestByAddress(t *testing.T) {
	d := sandbox()
	for text, want := range map[string]string{
		"5 Sandbox St, ZZ99 1AA":             "1099000010041",
		"Flat 2 Sand Court, ZZ99 1AA":        "1099000010079",
		"2 Sand Ct, ZZ99 1AA":                "1099000010079",
		"6 Sandbox Street, ZZ99 1AA":         "Unclear",
		"7 Sandbox Street, ZZ99 1AA":         "Unclear",
		"8 Sandbox Street, ZZ99 1AA":         "Unclear",
		"1 Sandbox Street, " + "ZZ99 9ZZ":    "Unclear",
		"1 Sandbox Street":                   "Invalid",
		"1 Sandbox Street, ZZ99 1SL":         "TimedOut",
		"1 Sandbox Street, ZZ99 1DN":         "Unavailable",
		"1 Sandbox Street, Testwick ZZ991AA": "1099000010005",
	} {
		m, err := d.ByAddress(t.Context(), text)
		got := m.MPAN
		if err != nil {
			got = map[flex.Kind]string{flex.Unclear: "Unclear", flex.Invalid: "Invalid", flex.TimedOut: "TimedOut", flex.Unavailable: "Unavailable"}[flex.KindOf(err)]
		}
		if got != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	l := append(list(SandboxMeters()),
		flex.Meter{MPAN: "1200023305967", Postcode: "BT1 1AA"})

	d := New(Listed{l}, NewRefs(key, rand.Reader), time.Now)
	for text, want := range map[string][]string{
		"1099000010005": nil,
		"1099000010014": nil,
		"1099000010032": {"not energised"},
		"1099000010050": {"export"},
		"1200023305967": {"export", "not energised", "Great Britain"},
		"1800021679848": {"no meter"},
	} {
		err := d.Validate(t.Context(), text)
		if want == nil {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}

		e, ok := errors.AsType[*flex.Error](err)
		if !ok || e.Kind != flex.NotFound || len(e.Details) != len(want) {
			t.Errorf("%s: %v, want %q", text, err, want)
			continue
		}

		for i := range want {
			if !strings.Contains(e.Details[i], want[i]) {
				t.Errorf("%s: %q, want %q", text, e.Details, want)
			}
		}
	}
	if len(details(d.Validate(t.Context(), "12x"))) != 2 {
		t.Error("a badly formed number lists all reasons")
	}
	if err := sandbox().Validate(t.Context(), DownMPAN); flex.KindOf(err) != flex.Unavailable {
		t.Errorf("a directory in trouble: %v", err)
	}
}

func TestMarkets(t *testing.T) {
	for mpan, want := range map[string]string{
		"1099000010005": "[cm dno wholesale]", "1099000010014": "[cm dno]", "1099000010032": "[]", "1099000010050": "[]",
	} {
		m, err := list(SandboxMeters()).MeterByMPAN(t.Context(), mpan)
		if err != nil || fmt.Sprint(Markets(m)) != want {
			t.Errorf("%s: %v, want %s", mpan, Markets(m), want)
		}
	}
}

func TestReadMeters(t *testing.T) {
	const head = "mpan,direction,address,postcode,uprn,energised,half_hourly_settled,domestic,supplier_mpid,supplier_name,gsp_group\n"
	const row = `10 9900 0010 005,import,"1 Sandbox Street, Testwick",zz991aa,,true,false,true,FLXD,Flexible,_A` + "\n"
	read := func(text string) (meters []flex.Meter, err error) {
		err = ReadMeters(strings.NewReader(text), func(m flex.Meter) error { meters = append(meters, m); return nil })
		return meters, err
	}
	got, err := read(head + row)
	want := flex.Meter{MPAN: "1099000010005", Import: true, Address: "1 Sandbox Street, Testwick", Postcode: "ZZ99 1AA",
		Energised: true, Domestic: true, SupplierMPID: "FLXD", SupplierName: "Flexible", GSPGroup: "_A"}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%v, %v", got, err)
	}

	for _, c := range []struct{ old, new, want string }{
		{"10 9900 0010 005", "1099000010006", "line 2: mpan: the last digit"},
		{"import", "both", `line 2: direction: "both"`},
		{`"1 Sandbox Street, Testwick"`, "", "line 2: address: it has 0"},
		{"zz991aa", "1AA", "line 2: postcode"},
		{"true,false,true", "TRUE,false,true", `line 2: energised: "TRUE"`},
		{"true,false,true", "true,,true", `line 2: half_hourly_settled: ""`},
		{"true,false,true", "true,false,no", `line 2: domestic: "no"`},
		{row, row + row, "line 3: mpan: this MPAN is in the file twice"},
		{"uprn,energised", "uprn,live", "line 1: there is no column energised"},
	} {
		if _, err := read(strings.Replace(head+row, c.old, c.new, 1)); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
	full := errors.New("the store is full")
	if err := ReadMeters(strings.NewReader(head+row), func(flex.Meter) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// moody answers as its mood says and counts how often it was asked.
type moody struct {
	err   error
	wait  time.Duration
	asked int
}

func (m *moody) answer(ctx context.Context) error {
	m.asked++
	select {
	case <-ctx.Done():
		return fmt.Errorf("ask: %w", ctx.Err())
	case <-time.After(m.wait):
		return m.err
	}
}

func (m *moody) ByPostcode(ctx context.Context, p Postcode) ([]flex.Meter, error) {
	return []flex.Meter{{Postcode: string(p)}}, m.answer(ctx)
}

func (m *moody) ByMPAN(ctx context.Context, n MPAN) (flex.Meter, error) {
	return flex.Meter{MPAN: n.Core()}, m.answer(ctx)
}

func distant(t *testing.T, m *moody) (*Distant, func(string) flex.Kind, *bytes.Buffer) {
	var log bytes.Buffer
	d := NewDistant(m, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
	return d, func(mpan string) flex.Kind {
		n, err := ParseMPAN(mpan)
		if err != nil {
			t.Fatal(err)
		}

		got, err := d.ByMPAN(t.Context(), n)
		if err == nil && got.MPAN != mpan {
			t.Errorf("%s answered for %s", got.MPAN, mpan)
		}
		if err == nil {
			return flex.Kind(255)
		}
		return flex.KindOf(err)
	}, &log
}

const fine = flex.Kind(255)

func TestDistantRemembersAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		d, ask, _ := distant(t, m)
		expect := func(asked int, kind, want flex.Kind) {
			t.Helper()
			if m.asked != asked || kind != want {
				t.Errorf("asked %d times, want %d; kind %d, want %d", m.asked, asked, kind, want)
			}
		}

		expect(1, ask("1200023305967"), fine)
		expect(1, ask("1200023305967"), fine)
		expect(2, ask("1312345678907"), fine)
		time.Sleep(DetailsLife - time.Second)
		expect(2, ask("1200023305967"), fine)
		time.Sleep(time.Second)
		expect(3, ask("1200023305967"), fine)

		m.err = flex.Fail(flex.NotFound, "none")
		expect(4, ask("1800021679848"), flex.NotFound)
		expect(5, ask("1800021679848"), flex.NotFound) // never remembered: it may be registered tomorrow
		m.err = errors.New("broken")
		expect(6, ask("1800021679848"), flex.Unavailable)
		m.err = nil
		expect(7, ask("1800021679848"), fine)

		for range 2 {
			if _, err := d.ByPostcode(t.Context(), "NW1 6XE"); err != nil || m.asked != 8 {
				t.Errorf("%v, asked %d times", err, m.asked)
			}
		}
		time.Sleep(SearchLife)
		if _, err := d.ByPostcode(t.Context(), "NW1 6XE"); err != nil || m.asked != 9 {
			t.Errorf("%v, asked %d times", err, m.asked)
		}
	})
}

func TestDistantForgetsWhenFull(t *testing.T) {
	var m memory[int]
	m.life = time.Hour
	now := time.Unix(0, 0)
	for i := range MaxRemembered + 1 {
		m.put(fmt.Sprint(i), i, now)
		if len(m.kept) > MaxRemembered {
			t.Fatalf("%d answers kept", len(m.kept))
		}
	}

	if v, ok := m.get(fmt.Sprint(MaxRemembered), now); !ok || v != MaxRemembered {
		t.Error("the newest answer is kept")
	}
	if _, ok := m.get(fmt.Sprint(MaxRemembered), now.Add(-time.Minute)); ok {
		t.Error("an answer from the future, by a clock set back, is not used")
	}
}

func TestDistantTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{wait: LookupTimeout - time.Millisecond}
		d, ask, log := distant(t, m)
		if kind := ask("1200023305967"); kind != fine {
			t.Errorf("just in time: kind %d", kind)
		}
		m.wait = LookupTimeout + time.Millisecond
		start := time.Now()
		if kind := ask("1312345678907"); kind != flex.TimedOut || time.Since(start) != LookupTimeout {
			t.Errorf("kind %d after %v", kind, time.Since(start))
		}

		if s := log.String(); !strings.Contains(s, "timed out") || strings.Contains(s, "1312345678907") {
			t.Errorf("logged %s", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.ByPostcode(ctx, "NW1 6XE"); !errors.Is(err, context.DeadlineExceeded) || d.rest.failures != 1 {
			t.Errorf("a client that goes away: %v, %d failures", err, d.rest.failures)
		}
	})
}

func TestDistantRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{err: errors.New("broken")}
		_, ask, _ := distant(t, m)
		for i := range MaxFailures + 3 {
			if kind := ask("1200023305967"); kind != flex.Unavailable {
				t.Errorf("question %d: kind %d", i, kind)
			}
		}
		if m.asked != MaxFailures {
			t.Errorf("asked %d times, want %d", m.asked, MaxFailures)
		}

		time.Sleep(PauseAfter - time.Second)
		ask("1200023305967")
		time.Sleep(time.Second)
		ask("1200023305967") // the trial fails: another rest
		ask("1200023305967")
		if m.asked != MaxFailures+1 {
			t.Errorf("asked %d times after a rest, want one more", m.asked)
		}

		m.err = nil
		time.Sleep(PauseAfter)
		if ask("1200023305967") != fine || ask("1312345678907") != fine {
			t.Error("a source that is back is asked again")
		}
		m.err = flex.Fail(flex.NotFound, "none") // an answer, not a failure
		for range MaxFailures + 1 {
			if kind := ask("1800021679848"); kind != flex.NotFound {
				t.Errorf("kind %d", kind)
			}
		}
	})
}

func TestRefsNeedRandomness(t *testing.T) {
	d := New(Listed{list(SandboxMeters())}, NewRefs(key, io.LimitReader(rand.Reader, 5)), time.Now)
	if _, err := d.Search(t.Context(), org, "ZZ99 1AA", ""); err == nil {
		t.Error("a reference without a nonce")
	}
}

func FuzzOpen(f *testing.F) {
	r := NewRefs(key, strings.NewReader(strings.Repeat("n", 64))) // the same reference in each of the fuzzer's processes
	m, err := ParseMPAN("1200023305967")
	if err != nil {
		f.Fatal(err)
	}
	ref, err := r.Seal(m, org, time.Unix(2e9, 0))
	if err != nil {
		f.Fatal(err)
	}

	f.Add(ref)
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := r.Open(s, org, time.Unix(1e9, 0)); err == nil && s != ref {
			t.Fatalf("%q was opened", s)
		}
	})
}

// TestSearch_Full asks for each address that a search shows by that address: it is a full one.
func TestSearch_Full(t *testing.T) {
	d := sandbox()
	found, err := d.Search(t.Context(), org, "ZZ99 1AA", "")
	if err != nil || len(found) == 0 {
		t.Fatalf("%v %v", found, err)
	}

	for _, f := range found {
		if !strings.HasSuffix(f.Address, ", ZZ99 1AA") {
			t.Errorf("%q is not a full address", f.Address)
		}
		byRef, err := d.ByRef(t.Context(), org, f.Ref)
		if err != nil && flex.KindOf(err) != flex.Unclear {
			t.Fatal(err)
		}

		byAddress, err2 := d.ByAddress(t.Context(), f.Address)
		if flex.KindOf(err2) == flex.Unclear {
			continue // premises with several meters
		}
		if flex.KindOf(err) != flex.KindOf(err2) || err == nil && byRef.MPAN != byAddress.MPAN {
			t.Errorf("%q: %v %v by reference, %v %v by address", f.Address, byRef.MPAN, err, byAddress.MPAN, err2)
		}
	}

	if got := fullAddress("1 High Street, ZZ99 1AA", "ZZ99 1AA"); got != "1 High Street, ZZ99 1AA" {
		t.Errorf("the postcode twice: %q", got)
	}
}
