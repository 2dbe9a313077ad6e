// Package market is the service of prices: it takes them in from files and from the markets'
// own services, keeps each publication as a version, and answers what the curve is at an
// instant. A price that is missing stays missing; one that cannot be true is kept out, and
// the last good one is kept. It keeps settlement reports and metering points' pairs too, which the market's parties exchange.
//
// # Publications
//
// A publication is what one source said of one EFA day (23:00 to 23:00 in London), preliminary or final. It is never changed: another
// price is another publication, and of several the latest counts. A publication is made only if it says something new. It counts as known
// from the hour at which the day's prices come out (14:00 in London), or from now if that is past; the prices of a day that is over count as
// if they had come out on time, so that a plan of the past can be made again. What revises them then counts from when what it revises did.
//
// # Fetching
//
// FetchPrices asks each source for today's and tomorrow's prices, and for six hours after 23:00 in London for those of the day that ended
// then, at most every [AskEvery]. Sources: Elexon (market index, system
// price), Nord Pool (N2EX day-ahead auction), Octopus Energy (a tariff's unit rates) and NESO's carbon intensity.
//
//   - A source that fails is reported and asked again; the others are fetched all the same.
//   - One that fails at a day is asked for the next one all the same, unless it cannot be reached or has failed at two in a row.
//   - What was fetched before a failure is kept: each EFA day is a transaction.
//   - A row is kept out if its price lies beyond [MaxPrice], its start and settlement period contradict each other, its time is no quarter, half
//     or whole hour, or one of a half-hour's two quarters is missing. What was kept out is logged, shown by the console and counted in
//     flexd_prices_kept_out_rows until an answer is whole again.
//   - Quarters of an hour are joined to half-hours, weighted by what was traded; a price of an hour is that of both of its half-hours,
//     marked as derived.
//   - Prices of the next day that are later than [Grace] are an exception.
//
// In a sandbox prices may be made up (Invent): a publication for each day, known from its own hour, the same each time.
//
// # Which source counts
//
// A price has a role: planning, settlement or contract (package pricing has the rules). An organisation chooses a source for a role from an
// instant on. Once it has flex events, a half-hour that has begun keeps its source, so that nothing settled changes.
//
// Units: prices in micro-pounds a MWh (flex.Price), shown in £/MWh with two decimals; energy of reports in kWh; periods are
// UTC half-hours.
package market
