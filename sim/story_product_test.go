package sim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"

	"flexd/client"
	"flexd/internal/flex"
)

// invited is what the client was told of products, and which there are by their references.
type invited struct {
	mu       sync.Mutex
	secret   string
	sites    map[client.SiteID]string // the last reference that a site was invited to
	products map[string]client.ProductID
}

// receiveInvitation takes an invitation as the client does, which looks at its signature.
func (p *player) receiveInvitation(w http.ResponseWriter, r *http.Request) {
	var one struct {
		SiteID            client.SiteID `json:"site_id"`
		Reference, Status string
	}
	body, _ := io.ReadAll(r.Body)
	p.invited.mu.Lock()
	defer p.invited.mu.Unlock()

	_, err := client.VerifyWebhook(p.invited.secret, r.Header, body, p.now)
	if err != nil || json.Unmarshal(body, &one) != nil || one.Status != "open" {
		http.Error(w, "no invitation", http.StatusBadRequest)
		return
	}
	p.invited.sites[one.SiteID] = one.Reference
}

// actProduct plays a line of a product; false if it is none.
func (p *player) actProduct() bool {
	p.Helper()
	a := p.line.Args

	switch p.line.Verb {
	case "product":
		p.product()
	case "charged before":
		p.chargedBefore(a[0], p.number(a[1]), a[2], a[3], int(p.number(a[4])))
	case "share":
		_, err := p.app.Reward.SetTerms(p.Context(), p.org, map[string]string{"user_share": fmt.Sprint(p.number(a[0]) / 100)}, flex.Day{}, "story")

		p.must(err)
	case "accepts":
		_, err := p.client.AnswerProduct(p.Context(), p.sites[a[0]], p.invited.products[a[2]], client.ProductAnswerRequest{TakesPart: new(a[1] == "accepts")})
		p.must(err)
	default:
		return false
	}
	return true
}

// chargedBefore reports what a charger drew at the same times of each of the days before this one.
func (p *player) chargedBefore(name string, kw float64, from, to string, days int) {
	p.Helper()
	var readings []client.ReadingDataPoint

	for day := flex.DayAt(p.now).Add(-days); day.Start().Before(flex.DayAt(p.now).Start()); day = day.Add(1) {
		for n := 1; n <= day.Periods(); n++ {
			q := day.Period(n)
			wall, kwh := q.Start().In(flex.London).Format("15:04"), 0.0
			if from <= wall && wall < to {
				kwh = kw / 2
			}
			readings = append(readings, client.ReadingDataPoint{AssetID: p.assets[name], StartTimestamp: client.At(q.Start()), EndTimestamp: client.At(q.End()),
				Value: kwh, Label: client.LabelChargerEnergy})
		}
	}
	p.post(readings)
}

// product imports a product, to which all sites are invited.
func (p *player) product() {
	p.Helper()
	a := p.line.Args
	if p.invited.sites == nil {
		p.invited.sites, p.invited.products = map[client.SiteID]string{}, map[string]client.ProductID{}
		var made struct{ Secret string }
		p.must(p.client.Do(p.Context(), "PUT", "/endpoints/invitation", nil, map[string]string{"url": "http://post/invitations"}, &made))
		p.invited.secret = made.Secret
	}

	done, err := p.client.ImportProducts(p.Context(), client.ProductsRequest{Products: []client.ProductRequest{{
		Reference: a[0], Service: "dfs", VolumeKW: p.number(a[1]), StartTimestamp: client.At(p.clock(a[2])), EndTimestamp: client.At(p.clock(a[3])),
		PriceGBPPerMWh: p.number(a[4]), AnswerBy: client.At(p.clock(a[5])),
	}}}, client.ProductImportQuery{})
	p.must(err)
	p.invited.products[a[0]] = done.Products[0].ID
}

// expectProduct holds what became of a product against what should have; false if the line is of something else.
func (p *player) expectProduct() bool {
	p.Helper()
	a := p.line.Args

	switch p.line.Verb {
	case "expect invited":
		p.invited.mu.Lock()
		defer p.invited.mu.Unlock()
		if got := p.invited.sites[p.sites[a[0]]]; got != a[1] {
			p.wrong("it was invited to %q", got)
		}
	case "expect product":
		r, err := p.client.Product(p.Context(), p.invited.products[a[0]], client.ProductReportQuery{})

		p.must(err)
		near := math.Abs(-r.FlexKWh-p.number(a[2])) < 0.0005 && math.Abs(r.UtilisationGBP-p.number(a[3])) < 0.005
		if !strings.EqualFold(r.Product.State, a[1]) || !near {
			p.wrong("it is %s with %g kWh for £%g", r.Product.State, -r.FlexKWh, r.UtilisationGBP)
		}
	default:
		return false
	}
	return true
}
