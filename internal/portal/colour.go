package portal

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/web"
)

// The papers that an organisation's colours stand on, as the style sheet has them.
const (
	LightPaper = "#ffffff"
	DarkPaper  = "#141a21"
)

// ContrastMin is the least contrast of text, by WCAG 2.2, level AA.
const ContrastMin = 4.5

var colourForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// ReadColour reads a colour as in #0b5d51 that text and buttons on a paper may have. One whose contrast
// is below ContrastMin is refused with the ratio.
func ReadColour(text, paper string) (string, error) {
	text = strings.ToLower(text)
	if !colourForm.MatchString(text) {
		return "", fmt.Errorf("a colour such as #0b5d51")
	}

	ratio := contrast(text, paper)
	if ratio < ContrastMin {
		return "", fmt.Errorf(
			"to be read on %s: the contrast is %.2f, and has to be %.1f",
			paper,
			math.Floor(ratio*100)/100,
			ContrastMin,
		)
	}

	return text, nil
}

// contrast is the contrast ratio of two colours by WCAG 2.2, from 1 to 21.
func contrast(a, b string) float64 {
	light, dark := luminance(a), luminance(b)
	if light < dark {
		light, dark = dark, light
	}

	return (light + 0.05) / (dark + 0.05)
}

// luminance is the relative luminance of a colour of colourForm, from 0 to 1.
func luminance(colour string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		// two digits, as the form says
		n, _ := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
			continue
		}

		sum += weight * math.Pow((c+0.055)/1.055, 2.4)
	}

	return sum
}

// colours answers with the organisation's colours as a style sheet: pages have nothing inline.
func (s *Server) colours(r *request) error {
	h := r.w.Header()
	web.SetHeaders(h, r.Request, web.PolicyNothing)
	h.Set("Content-Type", "text/css; charset=utf-8")
	fmt.Fprint(r.w, colourSheet(r.visit.Page))

	return nil
}

// colourSheet has the page take its colours from settings; what is not set stays as it is.
func colourSheet(p flex.PageSettings) string {
	var b strings.Builder
	if p.Colour != "" {
		fmt.Fprintf(
			&b,
			"@media screen and (prefers-color-scheme: light) { :root { --act: %s; } }\n",
			p.Colour,
		)
	}

	if p.DarkColour != "" {
		fmt.Fprintf(
			&b,
			"@media screen and (prefers-color-scheme: dark) { :root { --act: %s; } }\n",
			p.DarkColour,
		)
	}

	return b.String()
}
