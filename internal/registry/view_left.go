package registry

import (
	"context"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// FoundInBooks is the result of a search in the books.
type FoundInBooks struct {
	Left     []OffboardedSite `json:"offboarded_sites,omitempty"`
	Payments []Payment        `json:"payments,omitempty"`
}

// OffboardedSite is a site that was offboarded. Its balance cannot be withdrawn any more.
type OffboardedSite struct {
	ID      flex.SiteID `json:"site_id"`
	OrgName string      `json:"organisation"`
	Assets  int         `json:"num_assets"`
	Balance flex.Pence  `json:"balance_pence"`
}

// Payment is an attempt at a withdrawal's payment.
type Payment struct {
	Reference string               `json:"reference"`
	ID        flex.TransactionID   `json:"withdrawal_id"`
	Attempt   int                  `json:"attempt"`
	SiteID    flex.SiteID          `json:"site_id"`
	OrgName   string               `json:"organisation"`
	Amount    flex.Pence           `json:"amount_pence"`
	Status    ledger.PaymentStatus `json:"status"`
}

// SearchBooks searches all organisations for an offboarded site, by its id or an asset's, and
// for payments by their reference on a bank statement.
func (s *Service) SearchBooks(
	ctx context.Context,
	text string,
) (FoundInBooks, error) {
	var found FoundInBooks
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		found = FoundInBooks{}

		var id flex.SiteID
		if id.UnmarshalText([]byte(text)) == nil {
			left, err := all.OffboardedSites(ctx, id)
			for _, l := range left {
				found.Left = append(found.Left, OffboardedSite{
					ID:      l.ID,
					OrgName: l.OrgName,
					Assets:  l.Assets,
					Balance: l.Balance,
				})
			}

			return err
		}

		reference := strings.ToUpper(text)
		if !ledger.IsReference(reference) {
			return nil
		}

		payments, err := all.PaymentsOf(ctx, reference)
		for _, p := range payments {
			found.Payments = append(found.Payments, Payment{
				Reference: p.Reference,
				ID:        p.ID,
				Attempt:   p.Attempt,
				SiteID:    p.SiteID,
				OrgName:   p.OrgName,
				Amount:    p.Amount,
				Status:    p.Status,
			})
		}

		return err
	})

	return found, err
}
