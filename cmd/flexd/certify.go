package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

// certify is `flexd certify`.
type certify struct {
	Endpoint string `help:"URL of the endpoint; {asset_id}, {external_id} and {site_id} are filled in." required:"" placeholder:"URL"`
	Secret   string `help:"Secret that the endpoint verifies with, whsec_ and base64." required:"" placeholder:"S"`
	Bare     bool   `help:"Send only the charging profile, as to an endpoint that is registered as bare."`
	Nulls    bool   `help:"Write members without a value as null, as the endpoint was registered to get them."`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// grade is one thing that an endpoint was tried at.
type grade struct {
	Try    string `json:"try"`
	Passed bool   `json:"passed"`
	Got    string `json:"got"`
	Want   string `json:"want"`
	Advice string `json:"advice,omitempty"` // what to do about a failure

	isSilent bool // nothing came back
}

// quick is how soon an endpoint should answer; flexd waits for egress.AttemptTime.
const quick = time.Second

// Run tests a client's endpoint. It sends what flexd sends in normal operation and after
// failures, and compares the answers with those that flexd needs.
func (f *certify) Run(ctx context.Context, c console) error {
	_, err := client.SignWebhook(f.Secret, "", clock(), nil)
	if err != nil {
		return flex.Fail(
			flex.Invalid,
			"--secret: %v; it was shown when the endpoint was set, and POST /endpoints/schedule/rotate makes another",
			err,
		)
	}

	if !isWebURL(f.Endpoint) {
		return flex.Fail(
			flex.Invalid,
			"--endpoint: %q is no URL like https://client.example/chargers/{external_id}",
			f.Endpoint,
		)
	}

	grades := f.try(ctx, clock())
	failures := 0

	for _, g := range grades {
		if !g.Passed {
			failures++
		}
	}

	if f.JSON {
		if err := c.json(grades); err != nil {
			return err
		}
	} else {
		for _, g := range grades {
			mark := "pass"
			if !g.Passed {
				mark = "FAIL"
			}

			fmt.Fprintf(
				c.out,
				"%s  %-46s %s; wanted %s\n",
				mark,
				g.Try,
				g.Got,
				g.Want,
			)

			if g.Advice != "" {
				fmt.Fprintf(c.out, "      %s\n", g.Advice)
			}
		}

		fmt.Fprintf(
			c.out,
			"\n%d of %d passed\n",
			len(grades)-failures,
			len(grades),
		)
	}

	if failures > 0 {
		return fmt.Errorf("the endpoint failed %d of %d", failures, len(grades))
	}

	return nil
}

// adviceOn returns what to do about an unexpected answer. The expected one is acceptance, or a
// refusal of a message that does not come from flexd. Status 0 means no answer.
func adviceOn(status int, accept bool) string {
	switch {
	case status == 0:
		return "Nothing answers there: check address, port, firewall and certificate."

	case status/100 == 3:
		return "Pushes follow no redirect: register the address that it leads to."

	case status == http.StatusGone:
		return "410 disables the endpoint: keep it for an endpoint that is to get nothing any more."

	case accept && status == http.StatusUnauthorized, accept && status == http.StatusForbidden:
		return "The endpoint refuses a right signature: compare its secret, and verify the raw body."

	case accept && status == http.StatusNotFound:
		return "The endpoint does not know the charger flexd-certify: let it accept that one."

	case accept && status/100 == 2:
		return "Answer first and work afterwards: flexd gives up after " +
			egress.AttemptTime.String() + "."

	case accept:
		return "Answer with 2xx once the push is kept, also to one that came before and to fields that are new."

	case status/100 == 2:
		return "Anybody could send this: verify signature, id and time before you accept."
	}

	return "Answer with 400 or 401 what does not verify: flexd tries again after any other fault."
}

func (f *certify) try(ctx context.Context, now time.Time) []grade {
	asset := client.AssetID{
		0xce,
		0x27,
		6:  0x70,
		8:  0x80,
		15: 1,
	}

	to := strings.NewReplacer(
		"{asset_id}",
		asset.String(),
		"{external_id}",
		"flexd-certify",
		"{site_id}",
		asset.String(),
	).Replace(f.Endpoint)

	var grades []grade
	for _, t := range f.tries(asset, now) {
		g := t.grade(ctx, to, f.Secret)
		grades = append(grades, g)
		if len(grades) == 1 && g.isSilent {
			break // what does not answer at all is asked once
		}
	}

	return grades
}

// certifyTry is one push that an endpoint is tried with.
type certifyTry struct {
	name   string
	id     string
	at     time.Time
	body   []byte
	spoil  func(http.Header) // changes what was signed; nil: nothing
	refuse bool              // the endpoint must refuse it
}

// foreignSignature is one that is not made with the endpoint's secret.
const foreignSignature = "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// tries are the pushes, in their order.
func (f *certify) tries(asset client.AssetID, now time.Time) []certifyTry {
	first := "certify-" + now.UTC().Format("150405.000") + "-1"
	night := func(minutes int) []byte { return f.night(asset, now, minutes) }
	accepted := []certifyTry{
		{name: "a charging profile", id: first, at: now, body: night(60)},
		{name: "the same push again, as after a lost answer", id: first, at: now, body: night(60)},
		{name: "a newer profile in its place", id: first + "-2", at: now, body: night(120)},
	}

	tries := append(accepted, forgedTries(first, now, night(90))...)
	tries = append(
		tries,
		certifyTry{
			name: "old and new signature, as in a rotation",
			id:   first + "-8",
			at:   now,
			body: night(60),
			spoil: func(h http.Header) {
				h.Set(
					"webhook-signature",
					foreignSignature+" "+h.Get("webhook-signature"),
				)
			},
		},
	)

	var fields map[string]any
	if json.Unmarshal(night(60), &fields) == nil {
		fields["new_field"] = "of a later version"
		if b, err := json.Marshal(fields); err == nil {
			tries = append(tries, certifyTry{
				name: "a field that is not known yet",
				id:   first + "-9",
				at:   now,
				body: b,
			})
		}
	}

	return tries
}

// forgedTries are pushes that flexd did not sign, as a forger would send them.
func forgedTries(first string, now time.Time, body []byte) []certifyTry {
	return []certifyTry{
		{
			name:   "a signature that is not ours",
			id:     first + "-3",
			at:     now,
			body:   body,
			refuse: true,
			spoil: func(h http.Header) {
				h.Set("webhook-signature", foreignSignature)
			},
		},
		{
			name:   "a body that was changed on the way",
			id:     first + "-4",
			at:     now,
			body:   body,
			refuse: true,
			spoil: func(h http.Header) {
				h.Set("webhook-id", first+"-5")
			},
		},

		{
			name:   "a push from ten minutes ago",
			id:     first + "-6",
			at:     now.Add(-10 * time.Minute),
			body:   body,
			refuse: true,
		},
		{
			name:   "no signature at all",
			id:     first + "-7",
			at:     now,
			body:   body,
			refuse: true,
			spoil: func(h http.Header) {
				h.Del("webhook-signature")
			},
		},
	}
}

// night returns a charging profile that allows no charging for some minutes, and is unlimited
// from then on.
func (f *certify) night(
	asset client.AssetID,
	now time.Time,
	minutes int,
) []byte {
	from := now.Truncate(time.Second)
	on := from.Add(time.Duration(minutes) * time.Minute)
	p, err := ocpp.New(flex.AssetID(asset), []flex.Step{
		{Span: flex.Span{From: from, To: on}},
		{Span: flex.Span{From: on, To: from.Add(9 * time.Hour)}, Limit: flex.NoLimit},
	})
	if err != nil {
		panic(err) // two whole spans in order
	}

	return p.Message(1, ocpp.Form{Bare: f.Bare, Nulls: f.Nulls})
}

// grade sends the push and judges the answer.
func (t certifyTry) grade(ctx context.Context, to, secret string) grade {
	g := grade{Try: t.name, Want: "2xx within 1s"}
	if t.refuse {
		g.Want = "4xx, not 410"
	}

	h, err := client.SignWebhook(secret, t.id, t.at, t.body)
	if err != nil {
		g.Got = err.Error()
		return g
	}

	if t.spoil != nil {
		t.spoil(h)
	}

	status, took, err := post(ctx, to, h, t.body)
	g.Got = fmt.Sprintf("%d in %v", status, took.Round(time.Millisecond))
	if err != nil {
		g.Got = err.Error()
	}

	g.isSilent = err != nil && status == 0
	g.Passed = err == nil && t.good(status, took)
	if !g.Passed {
		g.Advice = adviceOn(status, !t.refuse)
	}

	return g
}

// good reports whether an answer is the expected one.
func (t certifyTry) good(status int, took time.Duration) bool {
	if t.refuse {
		return status/100 == 4 && status != http.StatusGone
	}
	return status/100 == 2 && took <= quick
}
