package console_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"flexd/internal/access"
)

var dropForm = regexp.MustCompile(`/console/views/[0-9a-f-]+/delete`)

// A list is saved under a name with its filters and its order, for its operator or for all
// operators of an organisation. It opens as it was saved, and only those who may can delete
// it.
func TestSavedViews(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		own := s.Strings(`SELECT name FROM org`)[0]
		fen, err := d.db.AddOrg(t.Context(), "Fen Power")
		if err != nil {
			t.Fatal(err)
		}

		for name, orgs := range map[string][]string{"bea": {own}, "cem": {"Fen Power"}, "dot": nil} {
			if _, err := d.access.AddOperator(t.Context(), name, "a long password of theirs", access.Viewer); err != nil {
				t.Fatal(err)
			}
			if err := d.access.SetOperatorOrgs(t.Context(), name, access.OperatorOrgs{Every: orgs == nil, Names: orgs}); err != nil {
				t.Fatal(err)
			}
		}

		save := func(who, name, view, org string) answer {
			d.loginAs(who, "a long password of theirs")
			return d.do(
				"POST",
				"/console/views",
				url.Values{"view_name": {name}, "view": {view}, "view_org": {org}},
			)
		}
		sees := func(who, page string) string {
			d.loginAs(who, "a long password of theirs")
			return d.page(page)
		}

		for _, v := range []struct{ who, name, view, org string }{
			{"bea", "Mine & dear", "/console/assets?state=plugged_in&sort=-power&model=&before=x&done=y", ""},
			{"bea", "Ours", "/console/assets?sort=asset", d.Org.String()},
			{"cem", "Fen's", "/console/assets?sort=asset", fen.ID.String()},
			{"dot", "Slow", "/console/deliveries?sort=-took", d.Org.String()},
			{"dot", "Slow", "/console/deliveries?sort=-took&state=rejected", ""},
		} {
			if a := save(v.who, v.name, v.view, v.org); a.status != 303 || !strings.Contains(a.header.Get("Location"), "done=viewsaved") {
				t.Fatal(v, a.status, a.body)
			}
		}

		d.wants(
			sees("bea", "/console/assets"),
			html.EscapeString("/console/assets?sort=-power&state=plugged_in")+`">Mine &amp; dear<`,
			">Ours<",
			"yours alone",
			"bea, shared with",
		)
		for page, lacks := range map[string][]string{
			sees("bea", "/console/assets"): {"Fen&#39;s", "Slow"}, sees("cem", "/console/assets"): {"Mine", "Ours"}, sees("dot", "/console/assets"): {"Mine"},
			sees("cem", "/console/deliveries"): {"Slow"}, sees("bea", "/console/deliveries"): {"state=rejected\">Slow"},
		} {
			for _, text := range lacks {
				if strings.Contains(page, ">"+text) {
					t.Errorf("%s is shown to somebody else", text)
				}
			}
		}

		if n := strings.Count(sees("dot", "/console/deliveries"), ">Slow<"); n != 2 {
			t.Errorf("%d views of dot's", n)
		}
		if a := d.do("GET", "/console/assets?sort=-power&state=plugged_in", nil); a.status != 200 {
			t.Error(a.status)
		}

		for says, a := range map[string]answer{
			"1 to 60 characters, not 61": save("bea", strings.Repeat("ä", 61), "/console/assets", ""), "1 to 60 characters, not 0": save(
				"bea",
				"  ",
				"/console/assets",
				"",
			),
			"at most 2000 bytes": save("bea", "x", "/console/assets?model="+strings.Repeat("a", 2000), ""), "There is no organisation": save(
				"bea",
				"x",
				"/console/assets",
				fen.ID.String(),
			),
			"such as /console/assets?state=refused": save("bea", "x", "//else.example/console/assets", ""), "not &#34;/console/audit&#34;": save(
				"bea",
				"x",
				"/console/audit",
				"",
			),
		} {
			if a.status < 400 || a.status > 499 || !strings.Contains(a.body, says) {
				t.Errorf("%s: %d %s", says, a.status, a.body)
			}
		}
		if a := save("bea", strings.Repeat("ä", 60), "/console/assets", ""); a.status != 303 {
			t.Errorf("60 characters: %d", a.status)
		}

		mine := dropForm.FindString(sees("bea", "/console/assets"))
		d.loginAs("cem", "a long password of theirs")
		if a := d.do("POST", mine, url.Values{}); a.status != 404 {
			t.Errorf("cem deletes bea's: %d", a.status)
		}
		if dropForm.MatchString(sees("dot", "/console/assets")) {
			t.Error("a viewer is offered to delete another's")
		}

		d.loginAs(operator, password) // an administrator of all
		d.post(dropForm.FindString(d.page("/console/assets")), nil)
		d.loginAs("bea", "a long password of theirs")
		d.post(mine, nil)
		if a := d.do("POST", mine, url.Values{}); a.status != 404 {
			t.Errorf("twice: %d", a.status)
		}

		d.loginAs("cem", "a long password of theirs")
		for n := range access.SavedViewsMax + 1 {
			a := d.do(
				"POST",
				"/console/views",
				url.Values{"view_name": {fmt.Sprint("v", n)}, "view": {"/console/assets"}},
			)
			if full := n == access.SavedViewsMax; a.status != 303 && !full || a.status != 409 && full {
				t.Errorf("view %d: %d", n, a.status)
				break
			}
		}
	})
}

// A view with a name that its operator has used already replaces the other view. A view of
// another list, or for others, does not.
func TestSavedViews_SameName(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		for _, v := range []struct{ view, org string }{
			{"/console/assets?state=plugged_in", ""}, {"/console/assets", d.Org.String()}, {"/console/deliveries", ""}, {"/console/assets?state=excluded", ""},
		} {
			a := d.do(
				"POST",
				"/console/views",
				url.Values{"view_name": {"Late"}, "view": {v.view}, "view_org": {v.org}},
			)
			if a.status != 303 {
				t.Fatal(v, a.status, a.body)
			}
		}

		page := d.page("/console/assets")
		if n := strings.Count(page, ">Late<"); n != 2 || strings.Contains(page, `state=plugged_in">Late<`) {
			t.Errorf("%d views of one name", n)
		}
		if n := strings.Count(d.page("/console/deliveries"), ">Late<"); n != 1 {
			t.Errorf("%d views of the other list", n)
		}
	})
}
