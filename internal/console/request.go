package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// formMax is the size limit of a form.
const formMax = 64 << 10

// request is the state of a request in a handler.
type request struct {
	*http.Request
	operator access.Operator     // zero on public routes
	from     string              // the client's address
	w        http.ResponseWriter // used by the handlers that set a cookie or stream
}

// view is the result of a handler: a page, a table to download, JSON, or a redirect.
type view struct {
	status int // 200 if 0
	page   string
	part   string // of the page alone, without the layout
	title  string
	crumbs []crumb // between the console and the page itself
	data   any
	table  *table // for .csv and .json
	next   string // address of the list's next page, "" after the last
	// reads the next part of a table to download whose parts have no addresses; nil after the
	// last
	rest   func() (view, error)
	record any // what the page shows, as its JSON
	json   any // the answer itself, in place of a page
	file   *download
	to     string // redirect after an act
}

// download is a file that the browser saves.
type download struct {
	name        string
	contentType string
	content     []byte
}

func (d *download) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", d.contentType)
	w.Header().Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	// fails when the client has gone, which is no one's concern
	w.Write(d.content)
}

// crumb is a link to a page above.
type crumb struct{ Name, Path string }

// guarded sets the headers of every response, and refuses actions from another site's page.
func guarded(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		web.SetHeaders(h, r, contentPolicy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, formMax)
		cross.Handler(next).ServeHTTP(w, r)
	})
}

// contentPolicy permits content of this console alone, and no inline scripts or styles.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// wrap wraps a route's handler in the steps of every request, which the package's
// documentation lists in order.
func (s *Server) wrap(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{
			Request: hr,
			from:    s.TrustedProxies.Client(hr),
			w:       w,
		}

		v, err := s.answer(rt, r)
		if err != nil {
			v = s.errorView(r, err)
		}

		if r.exporting() && v.table != nil && v.json == nil {
			s.download(w, rt, r, v)
			return
		}

		if r.wantsJSON() && v.json == nil {
			v.json = v.asJSON()
		}

		s.write(w, r, v)
	})
}

// answer runs the steps from the session to the handler. The first step that fails returns the
// error. A panic becomes an internal error.
func (s *Server) answer(
	rt route,
	r *request,
) (v view, err error) {
	defer flex.Recover(&err)

	if err := web.CheckText(r.Request); err != nil {
		return v, err
	}
	if rt.public {
		return rt.handle(s, r)
	}

	r.operator, err = s.Access.IdentifyOperator(
		r.Context(),
		s.sessionOf(r.Request),
	)
	if err != nil {
		return v, err
	}

	r.Request = r.WithContext(r.operator.Within(r.Context()))

	v, err = s.admit(rt, r)
	if err != nil || v.page != "" || v.to != "" {
		return v, err
	}

	v, err = rt.handle(s, r)
	if err == nil && rt.sees != "" {
		err = s.noteView(r, rt.sees)
	}

	return v, err
}

// noteView writes to the audit log that the operator viewed a site's page. The entry is under
// the site's organisation, whose own operators may read the log.
func (s *Server) noteView(r *request, act string) error {
	id, org, err := pathID(r, "site", s.Registry.SiteOrg)
	if err != nil {
		return err
	}

	return s.Access.See(r.Context(), access.Action{
		Act:     act,
		Org:     org,
		Subject: id.String(),
	}.By(r.operator.Name, r.from))
}

// errorView returns the view of an error. An error without text for users is logged and not
// shown.
func (s *Server) errorView(r *request, err error) view {
	kind := flex.KindOf(err)
	if kind == flex.Unauthorized && !r.isPlain() && r.Method == http.MethodGet {
		return view{to: "/console/login?" +
			url.Values{"next": {r.URL.RequestURI()}}.Encode()}
	}

	v := view{
		page:   "error",
		title:  "Not possible",
		status: web.StatusOf(kind),
	}

	e, ok := errors.AsType[*flex.Error](err)
	if !ok || kind == flex.Internal {
		level := slog.LevelError
		if web.ClientHungUp(r.Context(), err) { // nothing failed
			level = slog.LevelDebug
		}

		s.Log.LogAttrs(
			r.Context(),
			level,
			"console",
			slog.String("method", r.Method),
			slog.String("path", r.URL.Path),
			slog.Any("err", err),
		)

		e = &flex.Error{
			Detail: "Something went wrong here. It has been written to the log.",
		}
		v.status, v.title = http.StatusInternalServerError, "Internal error"
	}

	if kind == flex.NotFound {
		v.title = "Not found"
	}

	v.data = sentence(e.Error())
	if r.isPlain() {
		v.json = map[string]string{"detail": e.Error()}
	}

	return v
}

// isPlain reports whether the response is for a program: JSON or CSV in place of a page.
func (r *request) isPlain() bool {
	p := r.URL.Path
	return r.wantsJSON() || strings.HasSuffix(p, ".json") ||
		strings.HasSuffix(p, ".csv") ||
		strings.HasSuffix(p, "/live")
}

// write writes the view.
func (s *Server) write(w http.ResponseWriter, r *request, v view) {
	h := w.Header()

	if v.status == 0 {
		v.status = http.StatusOK
	}

	switch {
	case v.to != "":
		http.Redirect(w, r.Request, v.to, http.StatusSeeOther)

	case v.file != nil:
		v.file.send(w)

	case v.json != nil:
		h.Set("Content-Type", "application/json")
		w.WriteHeader(v.status)
		_ = json.NewEncoder(
			w,
		).Encode(v.json) // fails when the client has gone, which is no one's concern
	case v.page != "":
		var b bytes.Buffer
		if err := s.render(&b, r, v); err != nil {
			s.Log.ErrorContext(
				r.Context(),
				"console",
				"page",
				v.page,
				"err",
				err,
			)

			http.Error(w, "internal error", http.StatusInternalServerError)

			return
		}

		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(v.status)
		w.Write(b.Bytes()) // as above
	}
}

// frame is the data of the layout around a page.
type frame struct {
	Title       string
	Crumbs      []crumb
	Section     string // of the menu
	Operator    string // "" while nobody is logged in
	May         []access.Permission
	Menu        []item
	Environment flex.Environment
	Cell        string   // "" for the only one
	Cells       []string // all of them
	Now         time.Time
	Search      string
	Done        string // what an act has just done
	Clock       string // whose clock the page's times are by
	Halted      *delivery.HaltView
	Parts       int // halts of a part
	Data        any
}

// sectionOf returns the menu section of a page: the one with the page's address, or with the
// address of the nearest page above it.
func sectionOf(path string, crumbs []crumb) string {
	above := []string{path}
	for _, c := range slices.Backward(crumbs) {
		above = append(above, c.Path)
	}

	for _, p := range above {
		section, _, _ := strings.Cut(strings.TrimPrefix(p, Root+"/"), "?")
		section, _, _ = strings.Cut(section, "/")
		known := func(i item) bool { return i.Section == section }
		if slices.ContainsFunc(menu, known) {
			return section
		}
	}

	return ""
}

// trueTime are the sections whose times are by the true clock, and not by an organisation's.
var trueTime = []string{"alerts", "deliveries", "engine", "safety", "audit", "operators", ""}

// ownTime lists the pages of such sections, or of none, whose times are nevertheless by an
// organisation's clock.
var ownTime = []string{Root + "/limits", Root + "/search"}

// clockNote says by which clock the times of a page are, if an organisation has advanced its
// sandbox clock.
func (s *Server) clockNote(r *request, section string) (string, error) {
	const londonNote = "All times are London time."
	if r.operator.Name == "" || s.Environment != flex.Sandbox {
		return londonNote, nil
	}

	orgs, err := s.Registry.Orgs(r.Context())
	if err != nil {
		return "", err
	}

	var organisations []string
	for _, o := range orgs {
		if o.ClockOffset != 0 {
			organisations = append(organisations, o.Name)
		}
	}

	byTrue := slices.Contains(trueTime, section) && !slices.Contains(ownTime, r.URL.Path)

	switch {
	case len(organisations) == 0:
		return londonNote, nil
	case byTrue:
		return "All times are real time, in London, and not by the turned clock of " + shortList(organisations) + ".", nil
	}

	return "All times are London time, by the organisation's own clock; that of " + shortList(organisations) + " is turned.", nil
}

// shortList names some organisations.
func shortList(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// halts returns the halt of everything, if there is one, and the number of partial halts that
// the operator may see.
func (s *Server) halts(r *request) (*delivery.HaltView, int, error) {
	if r.operator.Name == "" {
		return nil, 0, nil
	}

	halts, err := s.Push.Halts(r.Context())
	if err != nil {
		return nil, 0, err
	}

	var halted *delivery.HaltView
	parts := 0

	for i := range halts {
		if halts[i].IsGlobal() {
			halted = &halts[i]
		} else {
			parts++
		}
	}

	return halted, parts, nil
}

func (s *Server) render(b *bytes.Buffer, r *request, v view) error {
	if v.part != "" {
		return pages[v.page].ExecuteTemplate(b, v.part, v.data)
	}

	halted, parts, err := s.halts(r)
	if err != nil {
		return err
	}

	section := sectionOf(r.URL.Path, v.crumbs)
	clock, err := s.clockNote(r, section)
	if err != nil {
		return err
	}

	return pages[v.page].ExecuteTemplate(b, "layout", frame{
		Title:       v.title,
		Crumbs:      v.crumbs,
		Section:     section,
		Clock:       clock,
		Operator:    r.operator.Name,
		May:         r.operator.Role.Permissions(),
		Menu:        menuOf(r.operator),
		Environment: s.Environment,
		Cell:        s.Cell,
		Cells:       s.Cells,
		Now:         s.Operations.Now(),
		Search:      r.URL.Query().Get("q"),
		Done:        doneText[r.URL.Query().Get("done")],
		Halted:      halted,
		Parts:       parts,
		Data:        v.data,
	})
}

// doneText is the message after an action, by the word in its redirect.
var doneText = map[string]string{
	"halted":      "All pushes are halted.",
	"parthalted":  "A part of the pushes is halted.",
	"resumeasked": "The end of the halt is asked for. Somebody else ends it, within an hour.",
	"resumed":     "Pushes leave again.",
	"capped":      "The cap is set, and the fleet is planned under it.",
	"instructed":  "The instruction is sent.",
	"imported":    "The products are kept, and households are invited.",
	"unasked":     "Nothing is asked for by it any more, and who was invited is informed.",
	"bound":       "The binding is changed. What is asked for now is sent within seconds.",
	"stopped":     "Whoever was called returns to the plan without.",
	"noted":       "It is noted. Everybody who looks sees it.",
	"alert-test":  "The test is sent within seconds; what came of it stands under Sent.",
	"rated":       "The change holds: a schedule under way is planned again.",
	"viewsaved":   "The view is saved.",
	"viewdropped": "The view is deleted.",
	"replayed":    "It is sent once more.",
	"turned":      "The clock is turned, and all that was due on the way is done.",
	"plugged":     "A car is plugged in.",
	"unplugged":   "The car is unplugged.",
	"certified":   "The certificates are set: the credential and its tokens need one of them. If you gave none, no certificate is asked for.",
	"revoked":     "The credential is revoked; its tokens stop working now.",
	"decided":     "The decision is taken.",
	"overrode":    "The check of the name is overridden: another operator may approve the withdrawal.",
	"terms":       "The term is changed, from the day that the table says.",
	"withdrawn":   "The consent is withdrawn. What was read while it held may still be settled.",
	"called":      "What the household agreed to counts from now on.",
	"supplied":    "The capacity is set, from the day that the list says.",
	"powered":     "The power is set, from the day that the site's list says.",
	"twostep":     "Everybody here gives a code at the login, too: set yours up, and the rest of the console opens.",
	"passkey":     "The passkey is kept: you can log in with it.",
	"keyless":     "The passkey opens nothing any more.",
	"codeless":    "Your logins ask for no code any more.",
	"orgs":        "It is set whose operator that is, from the next request on.",
	"role":        "The role is changed, from the next request on.",
	"loggedout":   "All sessions of the operator have ended.",
	"release":     "The reading counts from now on.",
	"discard":     "The reading never counts.",
	"settled":     "Settled again. The run stands below, to be compared; nothing was posted.",
}

// act carries out an operator's action, with an entry in the audit log.
func (s *Server) act(r *request, a access.Action, do func() error) error {
	return s.Access.Act(r.Context(), a.By(r.operator.Name, r.from), do)
}
