package portal

import (
	"net/http"
	"strconv"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

// history shows what was charged, a session and a month at a time.
func (s *Server) history(r *request) error {
	if r.visit.HideTransactions {
		return flex.Fail(flex.NotFound, "this page is not known")
	}

	page := 1
	if text := r.URL.Query().Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > historyPagesMax {
			return flex.Fail(
				flex.Malformed,
				"a page is numbered from 1 to %d",
				historyPagesMax,
			)
		}

		page = n
	}

	charges, err := s.Reward.Charges(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
		page-1,
	)
	if err != nil {
		return err
	}

	later, earlier := page-1, 0
	if page*reward.ChargesPage < charges.Total {
		earlier = page + 1
	}

	return s.show(r, http.StatusOK, "history", map[string]any{
		"Charges": charges,
		"Page":    page,
		"Later":   later,
		"Earlier": earlier,
	})
}

// historyPagesMax bounds how far back can be asked.
const historyPagesMax = 100_000

// comparedText says what a session cost or brought at market prices, beside charging at once.
func (l *speech) comparedText(c reward.Charge) string {
	if !c.Priced {
		return ""
	}

	if c.Cost.Pence() < 0 {
		return l.say("At market prices that brought {1}.", -c.Cost.Pence()) +
			l.besideText(c.Cost, c.AtOnce)
	}

	less := c.AtOnce.Pence() - c.Cost.Pence()
	if less <= 0 {
		return l.say("At market prices that cost {1}.", c.Cost.Pence())
	}

	return l.say(
		"At market prices that cost {1}, which is {2} less than charging at once.",
		c.Cost.Pence(),
		less,
	)
}

// earnedText says what a session earned, or what was taken off for it after a correction.
func (l *speech) earnedText(amount flex.Pence) string {
	if amount < 0 {
		return l.say("{1} taken off", -amount)
	}
	return l.say("earned {1}", amount)
}
