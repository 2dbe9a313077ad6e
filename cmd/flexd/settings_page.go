package main

import (
	"errors"
	"net/mail"
	"net/url"
	"regexp"

	"flexd/internal/flex"
	"flexd/internal/portal"
)

var phoneForm = regexp.MustCompile(`^\+?[0-9][0-9 ]{2,28}[0-9]$`)

// pageSettings lists the settings of an organisation's household page.
func pageSettings() []setting {
	add := func(name, standard, help string, read func(string) (string, error), field func(*flex.PageSettings) *string) setting {
		return text(
			setting{name: name, standard: standard, help: help},
			func(o *flex.OrgSettings) *string { return field(&o.Page) },
			read,
		)
	}

	colour := func(paper string) func(string) (string, error) {
		return func(text string) (string, error) { return portal.ReadColour(text, paper) }
	}

	return []setting{
		line(
			"page_name",
			"payer_name",
			"whose page the households' is, as they know it",
			func(o *flex.OrgSettings) *string { return &o.Page.Name },
		),
		add("page_colour", "#0b5d51", "of links and buttons on the households' page; its contrast with white is at least 4.5",
			colour(portal.LightPaper), func(p *flex.PageSettings) *string { return &p.Colour }),
		add(
			"page_colour_dark",
			"#5cc7b5",
			"the same on a dark page, #141a21",
			colour(portal.DarkPaper),
			func(p *flex.PageSettings) *string { return &p.DarkColour },
		),
		add(
			"page_email",
			"none",
			"where households ask, on their page",
			readEmail,
			func(p *flex.PageSettings) *string { return &p.Email },
		),
		add(
			"page_phone",
			"none",
			"the same, such as +44 20 7946 0000",
			readPhone,
			func(p *flex.PageSettings) *string { return &p.Phone },
		),
		add(
			"page_url",
			"none",
			"the same, an address of the web",
			readPageURL,
			func(p *flex.PageSettings) *string { return &p.URL },
		),
	}
}

func readEmail(text string) (string, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text {
		return "", errors.New("an e-mail address")
	}
	return text, nil
}

func readPhone(text string) (string, error) {
	if !phoneForm.MatchString(text) {
		return "", errors.New("a telephone number of digits and spaces, such as +44 20 7946 0000")
	}
	return text, nil
}

func readPageURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", errors.New("an address such as https://example.com/help")
	}

	web := u.Scheme == "https" || u.Scheme == "http"
	if !web || len(text) > 200 {
		return "", errors.New("an address such as https://example.com/help, of at most 200 characters")
	}

	return text, nil
}
