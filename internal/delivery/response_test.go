package delivery

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func TestBackoff(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 5 * time.Second, 1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second, 6: 160 * time.Second, 7: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		if got := backoff(n, 0.5); got != want {
			t.Errorf("failure %d: %v, want %v", n, got, want)
		}
		if low, high := backoff(n, 0), backoff(n, 0.999999); low != want*8/10 || high > want*12/10 || high < want*119/100 {
			t.Errorf("failure %d: %v to %v around %v", n, low, high, want)
		}
	}
}

func TestDelay_RetryAfter(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 3 * time.Second: 5 * time.Second, 8 * time.Second: 8 * time.Second, time.Hour: 10 * time.Second,
	} {
		if got := delay(1, 0.5, asked); got != want {
			t.Errorf("asked for %v: %v, want %v", asked, got, want)
		}
	}

	now := time.Date(2026, 1, 15, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "x": 0, "Thu, 15 Jan 2026 10:00:09 GMT": 9 * time.Second, "Thu, 15 Jan 2026 09:00:00 GMT": 0,
		"Thursday, 15-Jan-26 10:00:09 GMT": 9 * time.Second, "Thu Jan 15 10:00:09 2026": 9 * time.Second, "Thu, 15 Jan 2026 10:00:09 CET": 0,
		"0": 0, "007": 7 * time.Second, "+7": 0, "7.5": 0, "1000000": 1e6 * time.Second, "99999999999999999999999": 1e6 * time.Second,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestClassify(t *testing.T) {
	cut := errors.New("cut off")
	for _, c := range []struct {
		status int
		err    error
		want   store.PushState
		words  string
	}{
		{0, errors.New("no answer"), store.PushPending, "no answer"},
		{200, nil, store.PushAccepted, ""}, {204, nil, store.PushAccepted, ""}, {299, cut, store.PushAccepted, ""},
		{199, nil, store.PushPending, "no answer to a POST"}, {101, nil, store.PushPending, "no answer to a POST"},
		{301, nil, store.PushPending, "redirects are not followed"}, {308, nil, store.PushPending, "redirects are not followed"},
		{400, nil, store.PushRejected, "refuses it for good"}, {401, cut, store.PushRejected, "refuses"}, {404, nil, store.PushRejected, "refuses"},
		{408, nil, store.PushPending, "408"}, {425, nil, store.PushPending, "425"}, {429, nil, store.PushPending, "429"},
		{410, nil, store.PushPending, "disabled"}, {422, nil, store.PushRejected, "refuses"},
		{500, nil, store.PushPending, "500"}, {503, cut, store.PushPending, "503"}, {599, nil, store.PushPending, "599"}, {700, nil, store.PushPending, "700"},
	} {
		r := classify(egress.Answer{Status: c.status}, c.err, time.Time{})
		if r.state != c.want || !strings.Contains(r.reason, c.words) || r.isGone != (c.status == 410) {
			t.Errorf("%d: %+v", c.status, r)
		}
	}
}

func TestHashDraw_IsSpread(t *testing.T) {
	var tenths [10]int
	for i := range 1000 {
		for n := range 10 {
			tenths[int(hashDraw([16]byte{byte(i >> 8), byte(i)}, n)*10)]++
		}
	}
	for i, n := range tenths {
		if n < 800 || n > 1200 {
			t.Errorf("%d of 10000 in tenth %d", n, i)
		}
	}
}

func TestAddress(t *testing.T) {
	asset, site := flex.AssetID{1}, flex.SiteID{2}
	for _, c := range []struct{ template, external, want string }{
		{"https://a.example/p", "x", "https://a.example/p"},
		{"https://a.example/{asset_id}/{site_id}", "x", "https://a.example/" + asset.String() + "/" + site.String()},
		{"https://a.example/{external_id}?x={external_id}&y={external_id}", "a b/c?d&e#f", "https://a.example/a%20b%2Fc%3Fd&e%23f?x=a+b%2Fc%3Fd%26e%23f&y=a+b%2Fc%3Fd%26e%23f"},
		{"https://a.example/{external_id}/p", "..", "https://a.example/%2E%2E/p"},
		{"https://a.example/{external_id}/p", ".", "https://a.example/%2E/p"},
		{"https://a.example/{external_id}", "{asset_id}", "https://a.example/%7Basset_id%7D"},
	} {
		l := store.ClaimedPush{Push: store.Push{AssetID: asset}, ExternalID: c.external, SiteID: site}
		if got := address(c.template, &l); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.template, c.external, got, c.want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	if got := excerpt([]byte("a\x00b\xff"), false); got != "a\uFFFDb\uFFFD" {
		t.Errorf("%q", got)
	}
	long := []byte(strings.Repeat("é", 2000))
	if got := excerpt(long, false); len(got) > otherExcerptMax+3 || !strings.HasPrefix(got, "éé") {
		t.Errorf("%d bytes", len(got))
	}
	if got := excerpt(long, true); len(got) > acceptedExcerptMax+3 {
		t.Errorf("%d bytes", len(got))
	}
}

// No external id, however it is written, leaves its place in the URL.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"x", "..", ".", "a/b", "a?b#c", "%2F", "&y=1", "{site_id}", "@evil.example", "\\", "\x00", "é", ""} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, external string) {
		l := store.ClaimedPush{ExternalID: external}
		text := address("https://a.example/{external_id}/p?x={external_id}", &l)
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}

		if u.Host != "a.example" || u.User != nil || u.Fragment != "" || strings.Count(u.EscapedPath(), "/") != 2 || !strings.HasSuffix(u.EscapedPath(), "/p") ||
			len(u.Query()) != 1 || u.Query().Get("x") != external || u.Path != "/"+external+"/p" {
			t.Errorf("%q became %q", external, text)
		}
	})
}

// A text that somebody else wrote is kept as any store keeps it.
func TestClassify_ForeignWords(t *testing.T) {
	r := classify(egress.Answer{}, errors.New("valid for a\x00b\xff, not for c"), time.Time{})
	if want := "valid for a\uFFFDb\uFFFD, not for c"; r.reason != want {
		t.Errorf("%q, want %q", r.reason, want)
	}
}

// A test message goes to an address with no hole in it.
func TestAddress_Test(t *testing.T) {
	push := &store.ClaimedPush{Push: store.Push{Kind: store.TestPush}}
	if got := address("https://a.example/chargers/{external_id}/profile", push); got != "https://a.example/chargers/flexd-test/profile" {
		t.Errorf("a test goes to %s", got)
	}
}
