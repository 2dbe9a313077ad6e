// Package market is the service of prices: it imports them from files and from the markets' own
// services, stores each publication as a version, and answers what the price curve is at an
// instant. A missing price stays missing. A price that cannot be true is rejected, and the last
// good one stays in use. The package also stores settlement reports and pairs of metering points,
// which the market's parties exchange.
//
// # Publications
//
// A publication is what one source said of one EFA day (23:00 to 23:00 in London), preliminary or
// final. It is never changed: a different price is another publication, and of several the latest
// counts. A publication is made only if it differs from what the source said before.
//
// It counts as known from the hour at which the day's prices come out (14:00 in London), or from
// now if that is past. The prices of a day that is over count as if they had come out on time, so
// that a plan of the past can be made again; a later revision of them counts from the same
// instant as what it revises.
//
// # Fetching
//
// FetchPrices asks each source for today's and tomorrow's prices, at most every [AskEvery]. For
// six hours after 23:00 in London it also asks for those of the day that ended then. The sources
// are Elexon (market index, system price), Nord Pool (N2EX day-ahead auction), Octopus Energy (a
// tariff's unit rates) and NESO (carbon intensity).
//
//   - A source that fails is reported and asked again; the others are fetched all the same.
//   - A source that fails for one day is still asked for the next, unless it cannot be reached or
//     has failed for two in a row.
//   - What was fetched before a failure is stored: each EFA day is a transaction.
//   - A row is rejected if its price lies beyond [MaxPrice], its start and settlement period
//     contradict each other, its time is not a quarter, half or whole hour, or one of the two
//     quarters of a half-hour is missing. Rejected rows are logged, shown by the console and
//     counted in flexd_prices_kept_out_rows until an answer of the source has none.
//   - Quarter-hours are joined to half-hours, weighted by traded volume. An hourly price becomes
//     the price of both its half-hours, marked as derived.
//   - Prices of the next day that are later than [Grace] are an exception.
//
// In a sandbox prices may be invented (Invent): a publication for each day, known from its own
// hour, with the same prices each time.
//
// # Which source counts
//
// A price has a role: planning, settlement or contract (package pricing has the rules). An
// organisation chooses a source for a role from an instant on. Once it has flex events, a
// half-hour that has begun keeps its source, so that nothing settled changes.
//
// # Units
//
// Prices are micro-pounds a MWh (flex.Price), shown in £/MWh with two decimals; energy in reports
// is kWh; periods are UTC half-hours.
package market
