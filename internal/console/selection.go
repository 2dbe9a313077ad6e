package console

import (
	"fmt"
	"strconv"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
)

// selectionPage is withdrawals that are to be approved together, or were.
type selectionPage struct {
	Org flex.OrgID
	reward.Selection
	Done bool // they are approved; before, this is the form that does it
	Max  int
}

// readSelection reads which withdrawals a form selects: those that are ticked, or with "all"
// the oldest that wait.
func (s *Server) readSelection(r *request) (selectionPage, []flex.TransactionID, error) {
	var p selectionPage
	p.Max = reward.SelectionMax
	if err := readID(&p.Org, r.PathValue("org"), "organisation"); err != nil {
		return p, nil, err
	}

	var ids []flex.TransactionID
	if r.PostFormValue("all") != "" {
		waiting, err := s.Reward.Payouts(
			r.Context(),
			p.Org,
			ledger.PendingApproval,
		)
		if err != nil {
			return p, nil, err
		}

		for _, w := range waiting[:min(len(waiting), p.Max)] {
			ids = append(ids, w.ID)
		}
		return p, ids, nil
	}

	for _, text := range r.PostForm["id"] {
		var id flex.TransactionID
		if err := readID(&id, text, "withdrawal"); err != nil {
			return p, nil, err
		}

		ids = append(ids, id)
	}

	return p, ids, nil
}

// previewSelection shows the effect of approving the selection. It changes nothing.
func (s *Server) previewSelection(r *request) (view, error) {
	p, ids, err := s.readSelection(r)
	if err != nil {
		return view{}, err
	}

	p.Selection, err = s.Reward.PreviewSelection(
		r.Context(),
		p.Org,
		ids,
		r.operator.Name,
	)

	return view{
		page:   "selection",
		title:  "Approve a selection",
		crumbs: termsCrumbs(p.Org)[:1],
		data:   p,
	}, err
}

// approveSelection approves the withdrawals of the preview. The audit log gets one entry, with
// each withdrawal and its outcome.
func (s *Server) approveSelection(r *request) (view, error) {
	p, ids, err := s.readSelection(r)
	if err != nil {
		return view{}, err
	}

	if err := checkConfirmation(r, "approve"); err != nil {
		return view{}, err
	}

	pence, err := strconv.ParseInt(r.PostFormValue("sum_pence"), 10, 64)
	if err != nil {
		return view{}, flex.Fail(
			flex.Malformed,
			"sum_pence is the sum that the preview showed, in pence",
		)
	}

	sum := flex.Pence(pence)
	act := access.Action{
		Act:     "approve withdrawals",
		Org:     p.Org,
		Subject: fmt.Sprintf("%d withdrawals, %s", len(ids), sum),
		Detail:  fmt.Sprint(ids),
	}

	err = s.Access.ActWithDetail(
		r.Context(),
		act.By(r.operator.Name, r.from),
		func() (string, error) {
			p.Selection, err = s.Reward.ApproveSelection(
				r.Context(),
				p.Org,
				ids,
				sum,
				r.operator.Name,
			)

			if len(p.Lines) == 0 {
				return "", err
			}
			return p.Selection.String(), err
		},
	)

	p.Done = true

	return view{
		page:   "selection",
		title:  "Approved as a selection",
		crumbs: termsCrumbs(p.Org)[:1],
		data:   p,
	}, err
}
