package console_test

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"flexd/internal/flex"
	"flexd/internal/reading"
)

// previews opens the preview of a form, once an element of it is present, and checks it
// against the rules for all screens.
func (b *browser) previews(name, path, submit, shows string) {
	b.Helper()
	for _, width := range []int64{1280, 390} {
		call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 844, DeviceScaleFactor: 1, Mobile: width < 600})
		b.visit(path)
		b.truth(`(() => { setTimeout(() => { ` + submit + ` }, 100); return true })()`)
		b.run(chromedp.WaitReady(chromedp.CSS(shows)))
		b.fit(width, "light")

		screen := name
		if width < 600 {
			screen += "-phone"
			b.handy(screen)
		}
		b.sound(screen)
		b.contrast(screen)
		if *shots != "" {
			b.shoot(screen)
		}
	}
}

// Screens that no other test opens keep the rules for all screens: empty and full lists, the
// forms of groups, previews, and a page that does not exist.
func TestBrowser_OtherScreens(t *testing.T) {
	s := testScene(t)
	d := s.service
	d.login()

	batch := []reading.Input{{AssetID: s.assets[plain], Span: flex.PeriodAt(at("2026-01-14T12:00:00Z")).Span(), Label: flex.ChargerEnergy, Value: 510}}
	if _, err := (&reading.Service{DB: s.db}).Store(s.Context(), s.Org, batch); err != nil {
		t.Fatal(err)
	}
	most := flex.Watts(20_000)
	err := d.control.SetCaps(t.Context(), d.Org, flex.Caps{Groups: []flex.CapGroup{
		{Name: "feeder 7, Mill Lane", Parent: "substation 2", Cap: flex.Cap{Power: &most, StartsPerMinute: 12}, Sites: s.sites[:3]},
		{Name: "substation 2", Cap: flex.Cap{Power: &most}, Sites: s.sites[3:4]},
	}})
	if err != nil {
		t.Fatal(err)
	}

	b := browse(d)
	b.screen("safety-groups", "/console/safety")
	b.screen("readings-held", "/console/readings/held")
	b.screen("reading-held", d.link(d.page("/console/readings/held"), "/console/readings/held/"))
	b.screen("limits", "/console/limits")
	b.screen("terms", "/console/settlement/terms")

	b.screen("products", "/console/products")
	b.screen("programs", "/console/programs")
	b.screen("account", "/console/account")
	b.screen("operators", "/console/operators")
	b.screen("statement", "/console/sites/"+s.sites[plain].String()+"/statement")
	b.screen("assets-none", "/console/assets?model=none")
	b.screen("search-none", "/console/search?q=nobody")

	b.previews("act", "/console/assets", `document.querySelector("input[name=id]").click(); document.querySelector("form#acts button").click()`,
		"form[action='/console/assets/selection']")
	b.previews("halt", "/console/safety", `const form = document.querySelector("form[action='/console/safety/halt/preview']"); form.elements.org.selectedIndex = 1; form.querySelector("button").click()`,
		"form[action='/console/safety/halt'] input[type=hidden][name=scope]")
}
