package reward

import (
	"context"
	"maps"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// EventPrice is where the price of some half-hours of a flex event is from.
type EventPrice struct {
	Source string
	// contract or settlement: the planning price settles nothing
	Role        pricing.Role
	Publication flex.PublicationID
	PublishedAt time.Time // from when the source's prices counted as known
	ImportedAt  time.Time // when flexd had them
	// of the grid, whose price it is in place of the market's; the instants are when it was given
	Instruction flex.InstructionID
	HalfHours   int
}

// EventPrices returns where the prices are from at which results were settled, by event and then
// in order of their half-hours. What was settled before sources were kept has none.
func EventPrices(
	ctx context.Context,
	tx *store.Tx,
	results []*settle.Result,
) (map[flex.FlexEventID][]EventPrice, error) {
	selection, err := tx.PriceSelection(ctx)
	if err != nil {
		return nil, err
	}

	var ids []flex.PublicationID
	byEvent := map[flex.FlexEventID][]EventPrice{}

	for _, r := range results {
		for _, p := range r.Periods {
			byEvent[r.Event] = addInstructed(byEvent[r.Event], p.Instruction)
			if p.Publication.IsZero() {
				continue
			}

			ids = append(ids, p.Publication)
			byEvent[r.Event] = addPrice(byEvent[r.Event], EventPrice{
				Source:      p.Source,
				Publication: p.Publication,
				Role:        roleOf(selection, p.Source, r.Day.Period(p.Period).Start()),
			})
		}
	}

	publications, err := tx.PublicationsByID(ctx, ids)
	if err != nil {
		return nil, err
	}

	for _, prices := range byEvent {
		for i := range prices {
			if !prices[i].Instruction.IsZero() {
				continue
			}
			p := publications[prices[i].Publication]
			prices[i].PublishedAt, prices[i].ImportedAt = p.PublishedAt, p.FetchedAt
		}
	}

	return byEvent, instructedAt(ctx, tx, byEvent)
}

// addInstructed counts a half-hour that an instruction pays for, if one does.
func addInstructed(
	prices []EventPrice,
	id flex.InstructionID,
) []EventPrice {
	if id.IsZero() {
		return prices
	}

	return addPrice(prices, EventPrice{
		Source:      settle.InstructedSource,
		Role:        settle.InstructedSource,
		Instruction: id,
	})
}

// instructedAt notes when the instructions were given whose prices these are.
func instructedAt(
	ctx context.Context,
	tx *store.Tx,
	byEvent map[flex.FlexEventID][]EventPrice,
) error {
	madeAt := map[flex.InstructionID]time.Time{}
	for _, prices := range byEvent {
		for i := range prices {
			id := prices[i].Instruction
			if id.IsZero() {
				continue
			}

			at, known := madeAt[id]
			if !known {
				in, err := tx.Instruction(ctx, id)
				if err != nil {
					return err
				}
				at = in.MadeAt
				madeAt[id] = at
			}

			prices[i].PublishedAt, prices[i].ImportedAt = at, at
		}
	}

	return nil
}

// addPrice counts one more half-hour at a price's source.
func addPrice(prices []EventPrice, p EventPrice) []EventPrice {
	same := func(o EventPrice) bool {
		return o.Publication == p.Publication && o.Role == p.Role &&
			o.Instruction == p.Instruction
	}
	i := slices.IndexFunc(prices, same)

	if i < 0 {
		i = len(prices)
		prices = append(prices, p)
	}

	prices[i].HalfHours++

	return prices
}

// roleOf returns the role in which a source priced a half-hour.
func roleOf(s *pricing.Selection, source string, at time.Time) pricing.Role {
	if s.Chosen(pricing.Contract, at) == source {
		return pricing.Contract
	}
	return pricing.Settlement
}

// pricedAtOnce is how many events' settlements are read at a time.
const pricedAtOnce = 256

// pricesOf returns where the newest results of events have their prices from.
func pricesOf(
	ctx context.Context,
	tx *store.Tx,
	events []store.FlexEvent,
) (map[flex.FlexEventID][]EventPrice, error) {
	all := map[flex.FlexEventID][]EventPrice{}

	for chunk := range slices.Chunk(events, pricedAtOnce) {
		var ids []flex.FlexEventID
		for _, e := range chunk {
			ids = append(ids, e.ID)
		}

		settlements, err := tx.PostedSettlements(ctx, ids)
		if err != nil {
			return nil, err
		}

		newest := map[flex.FlexEventID]*settle.Result{}
		for _, s := range settlements { // an event's versions in their order
			newest[s.Event] = s.Result
		}

		var results []*settle.Result
		for _, id := range ids {
			if r := newest[id]; r != nil {
				results = append(results, r)
			}
		}

		prices, err := EventPrices(ctx, tx, results)
		if err != nil {
			return nil, err
		}

		maps.Copy(all, prices)
	}

	return all, nil
}
