package portal

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
)

// figures are what templates may call beside the language's own, the same in all languages.
var figures = template.FuncMap{
	"pounds": pounds,
	"plain": func(p flex.Pence) string {
		return fmt.Sprintf("%d.%02d", p/100, p%100)
	},
	"earned": func(t reward.Totals) string {
		return pounds(t.Earned + t.Other)
	},
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"hm":    clockIn,

	"capital": capital,
	"dial":    dial,
	"consent": func(kind string) consentWords { return consentTexts[kind] },
}

// minus writes the sign of a number below zero as the console does.
func minus(number string) string {
	return strings.ReplaceAll(number, "-", "−")
}

// pounds writes an amount of money.
func pounds(p flex.Pence) string { return minus(p.String()) }

// numbersIn write numbers in the language of their readers.
func numbersIn(l *speech) template.FuncMap {
	return template.FuncMap{
		"price": func(p *flex.Price) string {
			return l.decimal(minus(reward.PriceText(p)))
		},
		"worth": func(p settle.PicoPounds) string {
			return l.decimal(minus(reward.PenceText(p)))
		},
		"gross": func(g flex.MicroPounds) string {
			return l.decimal(minus(reward.PenceText(settle.PicoPounds(g) * 1_000_000)))
		},

		"kwh":    func(e *flex.WattHours) string { return l.decimal(kwh(e)) },
		"energy": func(e flex.WattHours) string { return l.decimal(kwh(&e)) },
		"exact":  func(e *flex.WattHours) string { return l.exact(*e) },
		"brief":  func(e flex.WattHours) string { return l.decimal(short(e)) },
	}
}

// exact is an energy in kWh to the watt-hour, without zeros at the end: in a sentence 80.000 kWh might be read as so many thousand.
func (l *speech) exact(e flex.WattHours) string {
	return l.decimal(strconv.FormatFloat(e.KWh(), 'f', -1, 64))
}

// functionsIn are the others, in the language of their readers.
func functionsIn(l *speech) template.FuncMap {
	return template.FuncMap{
		"t":    l.say,
		"lang": func() string { return l.tag },

		"day":     l.day,
		"clock":   l.clock,
		"long":    l.long,
		"session": l.span,
		"month": func(m ledger.Month) string {
			return l.when(m.First().Start(), flex.London, "January 2006")
		},

		"kind":  l.kind,
		"shift": l.shift,
		"status": func(s ledger.PaymentStatus) string {
			return l.say(statuses[s])
		},
		"chart":    l.chart,
		"plan":     l.planText,
		"name":     l.nameText,
		"saved":    l.savedText,
		"carbon":   l.carbonText,
		"cheap":    l.priceChart,
		"mode":     l.modeText,
		"because":  l.becauseText,
		"batpays":  l.batteryPaysText,
		"batsaves": l.batterySavesText,
		"allpay":   l.batteriesPayText,
		"compared": l.comparedText,
		"paid":     l.earnedText,
		"away":     l.awayText,
		"why":      l.whyText,
		"gives":    l.givesText,
		"full":     l.fullText,
		"heats":    l.heatsText,
		"warm":     l.warmText,
		"over":     planOver,
		"event":    l.eventText,
		"pays":     l.paysText,
		"part":     l.partText,
	}
}

// done is what the page says after something was done.
var done = map[string]string{
	"withdrawn": "Withdrawal requested. You can follow it here.",
	"linked":    "Your bank account is linked.",
	"sent":      "A code is on its way to your e-mail address.",
	"confirmed": "Thank you, the code was right.",
	"now":       "It charges at once. You can end that below at any time.",
	"stopped":   "Charging at once has ended. The plan goes on.",
	"skipped":   "It charges nothing until the plan ends. The next night is planned as usual.",
	"away":      "Thank you. Nothing is charged while you are away. That ends by itself.",
	"home":      "Welcome back. The plan is made again.",
	"gave":      "Thank you. What you agreed to counts from now on.",
	"withdrew":  "It is withdrawn, and counts no more.",
	"joined":    "Thank you. You take part in it.",
	"left":      "Thank you. You do not take part in it.",
	"wished":    "Thank you. Your wish counts from now on, and the plan is made again.",
}

var statuses = map[ledger.PaymentStatus]string{
	ledger.PendingApproval: "waits for approval",
	ledger.Approved:        "approved",
	ledger.Processing:      "being paid",
	ledger.Posted:          "paid",
	ledger.Failed:          "could not be paid",
	ledger.Rejected:        "rejected",
	ledger.Cancelled:       "cancelled",
	ledger.Returned:        "came back from the bank",
}

// kind says in words what a transaction is.
func (l *speech) kind(t ledger.Booked) string {
	switch t.Kind {
	case ledger.FlexEvent:
		if !t.Cause.FlexEvent.IsZero() {
			return l.say("Flexibility")
		}
		return l.say("Smart charging")

	case ledger.FlexPeriodTopUp:
		return l.say("Top-up")

	case ledger.Withdrawal:
		return l.say("Withdrawal")

	case ledger.GoodwillCredit:
		return l.say("Goodwill credit")

	case ledger.SignupBonus:
		return l.say("Signup bonus")

	case ledger.Correction:
		return l.say("Correction")
	}

	return strings.ToUpper(string(t.Kind)[:1]) + string(t.Kind)[1:]
}

// shift says in words what a transaction counts of flexibility, and when that was.
func (l *speech) shift(t ledger.Booked) string {
	energy := *t.Flex
	size := max(energy, -energy)

	kwh := l.exact(size)
	when := clockIn(t.Time.From, flex.London)
	until := clockIn(t.Time.To, flex.London)

	// These are what changed since an earlier transaction.
	later := t.Kind == ledger.FlexPeriodTopUp || t.Kind == ledger.Correction

	switch {
	case later && energy > 0:
		return l.say(
			"{1} kWh more than was counted before, {2} to {3}",
			kwh,
			when,
			until,
		)
	case later:
		return l.say(
			"{1} kWh less than was counted before, {2} to {3}",
			kwh,
			when,
			until,
		)
	case energy > 0:
		return l.say("{1} kWh more than usual, {2} to {3}", kwh, when, until)
	}

	return l.say("{1} kWh less than usual, {2} to {3}", kwh, when, until)
}

// done says what was done before the page was opened, if something was.
func (r *request) done() string {
	text := done[r.URL.Query().Get("done")]
	if text == "" {
		return ""
	}

	return r.speech.say(text)
}

// written is what the form that is wrong had in a field, of an asset or of none, else the standard.
func (r *request) written(asset, field, standard string) string {
	_, given := r.PostForm[field]
	if given && r.PostFormValue("asset") == asset {
		return r.PostFormValue(field)
	}

	return standard
}

// wrong is what is wrong with a form, in its reader's language.
func wrong(text string) error { return flex.Fail(flex.Malformed, "%s", text) }

// dial is a telephone number as a link; the settings take digits, spaces and a plus alone.
func dial(phone string) template.URL {
	return template.URL("tel:" + strings.ReplaceAll(phone, " ", ""))
}

func kwh(e *flex.WattHours) string {
	if e == nil {
		return "–"
	}
	return strconv.FormatFloat(e.KWh(), 'f', 3, 64)
}

// balance shows the balance.
func (s *Server) balance(r *request) error {
	p, err := s.Reward.BalancePage(r.Context(), r.visit)
	if err != nil {
		return err
	}

	mayLink := !p.Account.Linked && !p.NeedsCode
	if mayLink && r.visit.Setup && r.URL.Query().Get("done") == "" {
		http.Redirect(
			r.w,
			r.Request,
			reward.Root+r.token+"/account",
			http.StatusSeeOther,
		)

		return nil
	}

	return s.showBalance(r, http.StatusOK, p, "")
}

func (s *Server) showBalance(
	r *request,
	status int,
	p reward.BalancePage,
	wrong string,
) error {
	days := 0
	if p.DaysLeft != nil {
		days = *p.DaysLeft
	}

	form, err := s.Reward.NewForm()
	if err != nil {
		return err
	}

	household, err := s.Control.Household(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
	)
	if err != nil {
		return err
	}

	invited, err := s.invitations(r)
	if err != nil {
		return err
	}

	return s.show(r, status, "balance", map[string]any{
		"Form":        form,
		"Household":   household,
		"Invitations": invited,
		"Today":       flex.DayAt(household.Now).String(),
		"Written":     r.written,
		"Balance":     p,
		"Days":        days,
		"Done":        r.done(),
		"Wrong":       wrong,
		"Hidden":      r.visit.HideTransactions,
	})
}

// again shows the balance with what was wrong with what was asked for.
func (s *Server) again(r *request, wrong error) error {
	e, shown := errors.AsType[*flex.Error](wrong)
	if !shown {
		return wrong
	}
	k := flex.KindOf(wrong)
	if k == flex.NotFound || k == flex.Unavailable || k == flex.Internal {
		return wrong
	}

	visit, err := s.Reward.Open(
		r.Context(),
		r.token,
		r.visit.Browser,
	) // as it is now
	if err != nil {
		return err
	}

	r.visit = visit
	p, err := s.Reward.BalancePage(r.Context(), r.visit)
	if err != nil {
		return err
	}

	return s.showBalance(
		r,
		http.StatusUnprocessableEntity,
		p,
		sentence(e.Detail),
	)
}

// accountForm shows the form of the bank account.
func (s *Server) accountForm(r *request) error {
	return s.showAccount(r, http.StatusOK, nil)
}

func (s *Server) showAccount(r *request, status int, wrong []flex.Fault) error {
	p, err := s.Reward.BalancePage(r.Context(), r.visit)
	if err != nil {
		return err
	}

	faults := map[string]string{}
	for _, f := range wrong {
		faults[f.Loc[len(f.Loc)-1]] = sentence(f.Msg)
	}

	return s.show(r, status, "account", map[string]any{
		"Balance":  p,
		"Wrong":    faults,
		"Name":     r.PostFormValue("name"),
		"SortCode": r.PostFormValue("sort_code"),
		"Number":   r.PostFormValue("account_number"),
	})
}

// linkAccount keeps the bank account.
func (s *Server) linkAccount(r *request) error {
	account, err := reward.ReadBankAccount(
		r.PostFormValue("name"),
		r.PostFormValue("sort_code"),
		r.PostFormValue("account_number"),
	)
	if err == nil {
		err = s.Reward.LinkAccount(r.Context(), r.visit, account)
	}

	if e, ok := errors.AsType[*flex.Error](err); ok && len(e.Faults) > 0 {
		return s.showAccount(r, http.StatusUnprocessableEntity, e.Faults)
	}
	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, "linked")
}

// sendCode sends a code, to be entered in this browser.
func (s *Server) sendCode(r *request) error {
	if err := s.knowBrowser(r); err != nil {
		return err
	}
	if err := s.Reward.SendCode(r.Context(), r.visit); err != nil {
		return s.again(r, err)
	}

	return s.back(r, "sent")
}

// enterCode takes a code.
func (s *Server) enterCode(r *request) error {
	code := strings.Join(strings.Fields(r.PostFormValue("code")), "")
	if err := s.Reward.EnterCode(r.Context(), r.visit, code); err != nil {
		return s.again(r, err)
	}

	return s.back(r, "confirmed")
}

// withdraw asks for a withdrawal.
func (s *Server) withdraw(r *request) error {
	amount, err := readPounds(r.speech, r.PostFormValue("amount"))
	if err == nil {
		_, err = s.Reward.Withdraw(
			r.Context(),
			r.visit,
			amount,
			r.PostFormValue("form"),
		)
	}

	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, "withdrawn")
}

// amountForm is how an amount is written: an optional pound sign, one to seven digits, and
// an optional point with one or two digits for the pence. A comma is refused, since it means
// thousands to some and pence to others.
var amountForm = regexp.MustCompile(`^£? ?([0-9]{1,7})(?:\.([0-9]{1,2}))?$`)

// readPounds reads an amount as amountForm says: £12.34, 12.3 or 12.
func readPounds(l *speech, text string) (flex.Pence, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, ",") {
		return 0, wrong(l.say(
			"write the amount with a point before the pence and without commas, as in 1234.50",
		))
	}

	parts := amountForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, wrong(l.say("write the amount in pounds and pence, as in 12.34"))
	}

	pence, err := strconv.ParseInt(parts[1]+(parts[2] + "00")[:2], 10, 64)

	return flex.Pence(pence), err
}
