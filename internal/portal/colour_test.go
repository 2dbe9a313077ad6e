package portal_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/portal"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// A colour that cannot be read on its paper is refused with the ratio.
func TestReadColour(t *testing.T) {
	for _, tt := range []struct{ text, paper, want string }{
		{"#0B5D51", portal.LightPaper, "#0b5d51"},
		{"#767676", portal.LightPaper, "#767676"}, // 4.54, the lightest grey there is for white
		{"#777777", portal.LightPaper, "the contrast is 4.47, and has to be 4.5"},
		{"#ffffff", portal.LightPaper, "the contrast is 1.00"},
		{"#5cc7b5", portal.DarkPaper, "#5cc7b5"},
		{"#0b5d51", portal.DarkPaper, "the contrast is 2.24"},
		{"0b5d51", portal.LightPaper, "a colour such as"},
		{"#0b5d5", portal.LightPaper, "a colour such as"},
		{"#0b5d51;}", portal.LightPaper, "a colour such as"},
	} {
		got, err := portal.ReadColour(tt.text, tt.paper)
		if err != nil {
			got = err.Error()
		}

		if !strings.Contains(got, tt.want) {
			t.Errorf("%s on %s: %s, want %s", tt.text, tt.paper, got, tt.want)
		}
	}
}

// The page shows whose it is, in its colours, and how they are reached, also when its time is over.
func TestPortal_Organisation(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{})
	status, page := h.get(t, link)
	want(t, status, page, 200, "acme", "/colours.css")

	err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error {
		return tx.SetSettings(t.Context(), flex.OrgSettings{Page: flex.PageSettings{
			Name: "Acme & Co", Colour: "#7a1f5c", Email: "help@acme.example", Phone: "+44 20 7946 0000", URL: "https://acme.example/help",
		}})
	})
	if err != nil {
		t.Fatal(err)
	}

	status, page = h.get(t, link)
	want(t, status, page, 200, "Acme &amp; Co", `href="mailto:help@acme.example"`, `href="tel:&#43;442079460000"`, `href="https://acme.example/help"`)

	answer, err := http.Get(link + "/colours.css")
	if err != nil {
		t.Fatal(err)
	}

	defer answer.Body.Close()
	sheet, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(sheet), "--act: #7a1f5c;") || strings.Contains(string(sheet), "dark") {
		t.Errorf("%v: %s", err, sheet)
	}

	h.now = h.now.Add(reward.LinkLife)
	status, page = h.get(t, link)
	want(t, status, page, 404, "the app or the site of Acme &amp; Co", `href="mailto:help@acme.example"`)
}
