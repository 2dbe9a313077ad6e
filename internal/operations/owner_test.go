package operations

import (
	"strings"
	"testing"

	"flexd/internal/flex"
)

// An exception of all organisations says whose it is, as far as its examples go.
func TestNameOwners(t *testing.T) {
	acme, beta := flex.Org{ID: flex.OrgID{1}, Name: "Acme"}, flex.Org{ID: flex.OrgID{2}, Name: "Beta"}
	both := []flex.Org{acme, beta}
	of := func(names ...string) (assets []Asset) {
		for _, n := range names {
			assets = append(assets, Asset{OrgName: n})
		}
		return assets
	}

	for name, c := range map[string]struct {
		of   Exception
		orgs []flex.Org
		want string
	}{
		"one":          {Exception{Count: 2, Assets: of("Acme", "Acme")}, both, "Of Acme. Mend it."},
		"two":          {Exception{Count: 3, Assets: of("Beta", "Acme", "Beta")}, both, "Of Beta, Acme. Mend it."},
		"examples":     {Exception{Count: 3, Assets: of("Beta")}, both, "The first of Beta. Mend it."},
		"no assets":    {Exception{Count: 1, Org: beta.ID}, both, "Of Beta. Mend it."},
		"more of them": {Exception{Count: 2, Org: beta.ID}, both, "The first of Beta. Mend it."},
		"nobody's":     {Exception{Count: 1}, both, "Mend it."},
		"alone":        {Exception{Count: 1, Assets: of("Acme")}, both[:1], "Mend it."},
	} {
		t.Run(name, func(t *testing.T) {
			c.of.Text = "Mend it."

			found := []Exception{c.of}
			nameOwners(found, c.orgs)
			if found[0].Text != c.want {
				t.Errorf("%q, not %q", found[0].Text, c.want)
			}
		})
	}
}

// A count has its thousands apart, and its thing in the plural.
func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 pushes", 1: "1 push", 999: "999 pushes", 1000: "1 000 pushes", 1234567: "1 234 567 pushes"} {
		if got := strings.ReplaceAll(count(n, "push"), "\u202f", " "); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
