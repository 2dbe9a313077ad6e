package console

import (
	"io"
	"strconv"
	"strings"
	"time"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/store"
)

// safetyPage is what stops or limits all of flexd.
type safetyPage struct {
	Halted    *store.Halt
	Held      int
	Lines     []safetyLine
	Caps      []capsLine
	ReasonMax int
}

// safetyLine is an organisation with what waits for it.
type safetyLine struct {
	flex.Org
	Held int
}

func (s *Server) safety(r *request) (view, error) {
	p := safetyPage{ReasonMax: delivery.ReasonMax}
	var orgs []flex.Org
	err := s.DB.ReadAll(r.Context(), func(all *store.All) (err error) {
		p.Halted, err = all.Halted(r.Context())
		if err != nil {
			return err
		}

		orgs, err = all.Orgs(r.Context())
		if err != nil {
			return err
		}

		for _, o := range orgs {
			_, held, err := all.WaitingSince(r.Context(), o.ID, all.Now().Add(time.Second), 1)
			if err != nil {
				return err
			}

			p.Lines = append(p.Lines, safetyLine{o, held})
			p.Held += held
		}

		return nil
	})
	if err == nil {
		p.Caps, err = s.capsLines(r, orgs)
	}

	return view{page: "safety", title: "Safety", data: p}, err
}

func (s *Server) halt(r *request) (view, error) {
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	err := s.act(r, store.Act{Act: "halt pushes", Detail: reason}, func() error { return s.Push.Halt(r.Context(), r.who.Name, reason) })
	return view{to: "/console/safety?done=halted"}, err
}

func (s *Server) resume(r *request) (view, error) {
	err := s.act(r, store.Act{Act: "resume pushes"}, func() error { return s.Push.Resume(r.Context()) })
	return view{to: "/console/safety?done=resumed"}, err
}

// foreseenPage is what a file of prices would change.
type foreseenPage struct {
	HalfHours int
	Span      flex.Span
	Lines     []foreseenLine
	Changed   int
}

type foreseenLine struct {
	Name string
	control.Foreseen
}

// foresee says how many schedules a file of prices would change, and stores nothing.
func (s *Server) foresee(r *request) (view, error) {
	text := r.PostFormValue("prices")
	if f, _, err := r.FormFile("file"); err == nil {
		defer f.Close()

		b, err := io.ReadAll(f) // bounded with the whole form
		if err != nil {
			return view{}, flex.Fail(flex.TooLarge, "the file is too long for a dry run: %d bytes at most", formMax)
		}

		text = string(b)
	}

	prices, err := market.ReadPrices(strings.NewReader(text))
	if err != nil {
		return view{}, err
	}

	p := foreseenPage{HalfHours: len(prices), Span: flex.Span{From: prices[0].Period.Start(), To: prices[len(prices)-1].Period.End()}}
	var orgs []flex.Org
	err = s.DB.ReadAll(r.Context(), func(all *store.All) (err error) {
		orgs, err = all.Orgs(r.Context())
		return err
	})

	for _, o := range orgs {
		f, ferr := s.Control.Foresee(r.Context(), o.ID, prices)
		if ferr != nil {
			return view{}, ferr
		}

		p.Lines = append(p.Lines, foreseenLine{o.Name, f})
		p.Changed += f.Changed
	}

	return view{page: "foreseen", title: "Dry run of prices", crumbs: []crumb{{"Safety", "/console/safety"}}, data: p}, err
}

// number reads a number of a form, which may be left empty for none.
func number(text, what string, most float64) (float64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}

	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > most {
		return 0, flex.Fail(flex.Malformed, "%s is %q: give a number from 0 to %v, or nothing for none", what, text, most)
	}

	return v, nil
}
