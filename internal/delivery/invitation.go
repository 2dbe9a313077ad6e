package delivery

import (
	"encoding/json"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// invitation is the body of a push with an invitation of one of a client's sites, which its
// user may accept or refuse.
type invitation struct {
	EventID        flex.EventID   `json:"event_id"`
	ProductID      flex.ProductID `json:"product_id"`
	SiteID         flex.SiteID    `json:"site_id"`
	ExternalUserID string         `json:"external_user_id,omitempty"`
	// open, or withdrawn: no answer is expected any more
	Status        string  `json:"status"`
	Reference     string  `json:"reference"`
	Service       string  `json:"service"`
	Direction     string  `json:"direction"`
	Start         string  `json:"start_timestamp"`
	End           string  `json:"end_timestamp"`
	Price         float64 `json:"price_gbp_per_mwh"`
	Participation string  `json:"participation"`
	AnswerBy      string  `json:"answer_by"`
	TakesPart     bool    `json:"takes_part"`
}

// invitationBody renders the body of an invitation.
func invitationBody(v *flex.Invitation) ([]byte, error) {
	b := invitation{
		EventID:        v.Event,
		ProductID:      v.Product.ID,
		SiteID:         v.Site,
		ExternalUserID: v.ExternalUserID,
		Status:         "open",
		Reference:      v.Reference,
		Service:        v.Service,
		Direction:      "down",
		Start:          v.From.Format(instant),
		End:            v.To.Format(instant),
		Price:          v.Price.GBPPerMWh(),
		Participation:  "opt_in",
		AnswerBy:       v.AnswerBy.Format(instant),
		TakesPart:      v.TakesPart,
	}

	if !v.WithdrawnAt.IsZero() {
		b.Status = "withdrawn"
	}
	if v.Change > 0 {
		b.Direction = "up"
	}
	if v.OptOut {
		b.Participation = "opt_out"
	}

	return json.Marshal(b)
}

// testInvitation is the invitation of an endpoint's test message.
func testInvitation(p *store.ClaimedPush) *flex.Invitation {
	from := p.QueuedAt.Truncate(flex.HalfHour).Add(24 * time.Hour)
	v := &flex.Invitation{}
	v.Event = p.EventID
	v.Reference, v.Service = "test", "other"
	v.Span = flex.Span{From: from, To: from.Add(flex.HalfHour)}
	v.Change, v.AnswerBy = -1, from

	return v
}
