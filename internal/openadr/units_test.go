package openadr_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// TestUpstream_Units: the power of an event that names no unit is in the one that its program
// names, also after that changed. While the program cannot be read, what was known of it
// stays.
func TestUpstream_Units(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		describe := func(units string) {
			t.Helper()
			u.want(200, u.bl, "PUT", "/programs/"+u.program, fmt.Sprintf(`{"programName":"demand response","payloadDescriptors":[
				{"objectType":"REPORT_PAYLOAD_DESCRIPTOR","payloadType":"IMPORT_CAPACITY_LIMIT","units":"MW"},
				{"objectType":"EVENT_PAYLOAD_DESCRIPTOR","payloadType":"IMPORT_CAPACITY_LIMIT","units":%q}]}`, units))
		}

		limits := func(step string, want flex.Watts) {
			t.Helper()
			u.polled(step, 1, false, "")
			found, _, err := u.control.Limits(t.Context(), u.mine)
			if err != nil || len(found) != 1 || found[0].Power != want {
				t.Errorf("%s: %+v, %v, want %d W", step, found, err, want)
			}
		}

		describe("W")
		event := u.ask(u.bl, "POST", "/events", u.limit("9000"), jsonForm).field("id")
		limits("in W", 9000)
		describe("KW")
		limits("in kW", 9_000_000)
		described := strings.Replace(
			u.limit("5000"),
			"{",
			`{"payloadDescriptors":[{"objectType":"EVENT_PAYLOAD_DESCRIPTOR","payloadType":"IMPORT_CAPACITY_LIMIT","units":"W"}],`,
			1,
		)
		u.want(200, u.bl, "PUT", "/events/"+event, described)
		limits("the event names W", 5000)
		u.want(200, u.bl, "PUT", "/events/"+event, u.limit("7000"))
		describe("W")
		limits("in W again", 7000)

		written := u.now
		limits("as before", 7000)

		kept, err := u.adr.Search(
			t.Context(),
			adr.Client{Org: u.mine, ID: "bl", Business: true},
			flex.ADRSearch{Kind: flex.ADRProgram, ID: u.up.Program},
		)
		if err != nil || len(kept) != 1 || !kept[0].ModifiedAt.Equal(written) {
			t.Errorf(
				"the program is %+v, %v, want one written at %s, and not by the poll after it",
				kept,
				err,
				written,
			)
		}

		for status, wrong := range map[int]string{http.StatusNotFound: "", http.StatusForbidden: "", http.StatusMethodNotAllowed: "", http.StatusBadGateway: "it answered 502"} {
			u.broken = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/programs/") {
					return false
				}
				w.WriteHeader(status)
				return true
			}

			u.want(200, u.bl, "PUT", "/events/"+event, u.limit("6000"))
			u.polled(fmt.Sprint(status), 1, false, wrong)
			limit := map[bool]flex.Watts{true: 6000, false: 7000}[wrong == ""]
			if found, _, err := u.control.Limits(t.Context(), u.mine); err != nil || found[0].Power != limit {
				t.Errorf("%d: %+v, %v, want %d W", status, found, err, limit)
			}

			u.want(200, u.bl, "PUT", "/events/"+event, described) // it needs no program
			u.polled(fmt.Sprint(status), 1, false, wrong)
			if found, _, err := u.control.Limits(t.Context(), u.mine); err != nil || found[0].Power != 5000 {
				t.Errorf("%d: %+v, %v, want what the event names", status, found, err)
			}
			u.want(200, u.bl, "PUT", "/events/"+event, u.limit("7000"))
			u.broken = nil
			limits("well again", 7000)
		}
	})
}

// TestUpstream_UnitsOfOthers: limits are carried out whatever a server's program says of other
// payloads than powers, and where the unit of theirs is empty.
func TestUpstream_UnitsOfOthers(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm)
		u.broken = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/programs/") {
				return false
			}

			_, err := io.WriteString(w, `{"payloadDescriptors":[{"objectType":"EVENT_PAYLOAD_DESCRIPTOR","payloadType":"PRICE","units":7},
				{"objectType":"EVENT_PAYLOAD_DESCRIPTOR","payloadType":"IMPORT_CAPACITY_LIMIT","units":""}]}`)
			if err != nil {
				t.Error(err)
			}
			return true
		}

		u.polled("units that say nothing of a power", 1, false, "")
		found, _, err := u.control.Limits(t.Context(), u.mine)
		if err != nil || len(found) != 1 || found[0].Power != 9000 {
			t.Errorf("%+v, %v, want 9 kW", found, err)
		}
	})
}
