package console_test

import (
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/console"
)

// Every act names what it takes, so that nobody gets more than their role by an oversight.
func TestPermissions_EveryActNamesOne(t *testing.T) {
	for _, rt := range console.Surface() {
		if strings.HasPrefix(rt.Pattern, "POST ") && !rt.Public && rt.Named == "" {
			t.Errorf("%s names no permission", rt.Pattern)
		}
	}
}

// A form that an operator's role does not allow is hidden: it has the class of the permission
// that its route requires.
func TestPermissions_FormsAreMarked(t *testing.T) {
	form := regexp.MustCompile(`<form(?:[^>"]|"[^"]*")*method="post"(?:[^>"]|"[^"]*")*>`)
	action := regexp.MustCompile(`action="([^"]*)"`)
	value := regexp.MustCompile(`\{\{[^}]*\}\}`)
	pages := os.DirFS("template")

	files, err := fs.Glob(pages, "*.html")
	if err != nil {
		t.Fatal(err)
	}

	found := 0
	for _, name := range files {
		text, err := fs.ReadFile(pages, name)
		if err != nil {
			t.Fatal(err)
		}

		for _, tag := range form.FindAllString(string(text), -1) {
			to := action.FindStringSubmatch(tag)
			if to == nil {
				t.Errorf("%s: a form without an action: %s", name, tag)
				continue
			}

			needs, known := permissionOf(value.ReplaceAllString(to[1], "X"))
			if !known || needs == access.See {
				continue
			}

			found++
			if !strings.Contains(tag, "needs-"+string(needs)) {
				t.Errorf("%s: the form to %s lacks the class needs-%s", name, to[1], needs)
			}
		}
	}

	if found < 15 {
		t.Errorf("only %d forms were found: the test looks past them", found)
	}
}

// permissionOf is what posting to the path takes.
func permissionOf(path string) (needs access.Permission, known bool) {
	part := regexp.MustCompile(`\{[^}]*\}`)
	for _, rt := range console.Surface() {
		pattern, post := strings.CutPrefix(rt.Pattern, "POST ")
		if post && !rt.Public && regexp.MustCompile("^"+part.ReplaceAllString(pattern, "[^/]+")+"$").MatchString(path) {
			return rt.Needs, true
		}
	}
	return "", false
}

// Each role is tried on each route, through the whole console.
func TestPermissions_RolesByRoute(t *testing.T) {
	allowed := map[access.OperatorRole][]access.Permission{
		access.Viewer:  {access.See},
		access.OnDuty:  {access.See, access.Operate},
		access.Finance: {access.See, access.Pay},
		access.Admin:   {access.See, access.Operate, access.Pay, access.Administer},
	}

	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		for role, may := range allowed {
			if err := d.access.SetOperatorRole(d.Context(), operator, role); err != nil {
				d.Fatal(err)
			}

			for _, rt := range console.Surface() {
				method, path, _ := strings.Cut(rt.Pattern, " ")
				if rt.Public || strings.HasSuffix(path, "/live") {
					continue
				}

				d.login()
				path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "00000000-0000-0000-0000-000000000009")
				refused := d.do(method, path, url.Values{}).status == http.StatusForbidden
				want := true
				for _, p := range may {
					want = want && p != rt.Needs
				}

				if refused != want {
					d.Errorf("%s on %s: refused is %v", role, rt.Pattern, refused)
				}
			}
		}
	})
}

func TestPermissions_Refusal(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		if err := d.access.SetOperatorRole(d.Context(), operator, access.Viewer); err != nil {
			d.Fatal(err)
		}

		d.login()
		a := d.do("POST", "/console/safety/halt", url.Values{"reason": {"because"}})
		if a.status != http.StatusForbidden {
			d.Errorf("a viewer halts: %d", a.status)
		}

		d.wants(a.body, "Ada has the role viewer here, and this takes a role that may operate")

		if strings.Contains(d.page("/console/safety"), "All pushes are halted") {
			d.Error("the halt took place")
		}

		d.wants(d.page("/console/account"), "Your role is viewer: you may see.")

		// The change applies at the next request of the existing session.
		if err := d.access.SetOperatorRole(d.Context(), operator, access.OnDuty); err != nil {
			d.Fatal(err)
		}

		if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {"because"}}); a.status != http.StatusSeeOther {
			d.Errorf("an operator halts: %d %s", a.status, a.body)
		}
	})
}

// Acts on money and access ask for the password again some time after it was entered. They are
// then carried out with the form as it was.
func TestPermissions_StepUp(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		if _, err := d.access.AddOperator(d.Context(), "bea", "", access.Viewer); err != nil {
			d.Fatal(err)
		}

		change := func(password string) answer {
			form := url.Values{"name": {"bea"}, "role": {"finance"}}
			if password != "" {
				form.Set("confirm_password", password)
			}
			return d.do("POST", "/console/operators/role", form)
		}

		d.wait(access.ConfirmedFor - time.Second)
		if a := change(""); a.status != http.StatusSeeOther {
			d.Fatalf("a short while after the login: %d %s", a.status, a.body)
		}

		d.wait(time.Second)
		a := change("")
		if a.status != http.StatusForbidden {
			d.Fatalf("a while after the login: %d", a.status)
		}

		d.wants(a.body, "Confirm that it is you", `name="role" value="finance"`, `name="name" value="bea"`)
		wrong := change("not the password")
		d.wants(wrong.body, "That name and password do not go together.")

		if strings.Contains(wrong.body, "not the password") {
			d.Error("the page repeats the password")
		}

		if a := change(password); a.status != http.StatusSeeOther {
			d.Errorf("with the password: %d %s", a.status, a.body)
		}

		// It applies to this session only, and for a limited time.
		if a := change(""); a.status != http.StatusSeeOther {
			d.Errorf("after it: %d", a.status)
		}

		confirmed := d.cookie
		d.wait(access.ConfirmedFor / 2)
		d.cookie = nil
		d.login()
		d.wait(access.ConfirmedFor / 2)
		if a := change(""); a.status != http.StatusSeeOther {
			d.Errorf("in a session opened since: %d", a.status)
		}

		d.cookie = confirmed
		if a := change(""); a.status != http.StatusForbidden {
			d.Errorf("in the session of before: %d", a.status)
		}

		// Actions that need no confirmation are still possible.
		if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {"because"}}); a.status != http.StatusSeeOther {
			d.Errorf("a halt: %d", a.status)
		}
	})
}

func TestOperators_Page(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		made, err := d.access.AddOperator(d.Context(), "bea", "", access.Viewer)
		if err != nil {
			d.Fatal(err)
		}

		if _, err := d.access.LoginOperator(d.Context(), "bea", made, "192.0.2.7"); err != nil {
			d.Fatal(err)
		}

		d.wants(d.page("/console/operators"), "192.0.2.7", "bea")

		if a := d.do("POST", "/console/operators/role", url.Values{"name": {operator}, "role": {"viewer"}}); a.status != http.StatusConflict {
			d.Errorf("their own role: %d %s", a.status, a.body)
		}

		if a := d.do("POST", "/console/operators/role", url.Values{"name": {"bea"}, "role": {"owner"}}); a.status != http.StatusBadRequest {
			d.Errorf("a role that is none: %d %s", a.status, a.body)
		}

		if a := d.do("POST", "/console/operators/logout", url.Values{"name": {"bea"}}); a.status != http.StatusSeeOther {
			d.Errorf("log another out: %d %s", a.status, a.body)
		}

		if strings.Contains(d.page("/console/operators"), "192.0.2.7") {
			d.Error("the session goes on")
		}

		d.wants(d.page("/console/account"), "this one")
		if a := d.do("POST", "/console/account/sessions/end", url.Values{}); a.status != http.StatusSeeOther {
			d.Errorf("log out everywhere: %d", a.status)
		}

		if a := d.get("/console/account"); a.status != http.StatusSeeOther {
			d.Errorf("logged out everywhere, and still in: %d", a.status)
		}
	})
}

// A session's last use is stored once a minute, and not at each page.
func TestOperators_LastUse(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	d.login()
	used := func() time.Time {
		sessions, err := d.access.OperatorSessions(d.Context())
		if err != nil || len(sessions) != 1 {
			t.Fatalf("%d sessions, %v", len(sessions), err)
		}
		return sessions[0].UsedAt
	}

	for _, step := range []struct {
		wait time.Duration
		want string
	}{{59 * time.Second, "2026-01-10T18:00:00Z"}, {time.Second, "2026-01-10T18:01:00Z"}, {time.Hour, "2026-01-10T19:01:00Z"}} {
		d.wait(step.wait)
		d.page("/console/account")
		if !used().Equal(at(step.want)) {
			t.Errorf("used at %s, want %s", used(), step.want)
		}
	}
}
