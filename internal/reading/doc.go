// Package reading takes meter and device readings in, one verdict each, keeps what was
// known when, tells what is missing, and lets readings go when their time is over. A batch
// never fails whole for one bad reading.
//
// # From a reading to the database
//
// Service.Take keeps a batch of up to [BatchMax] readings in one transaction. Each reading goes through these steps;
// the first that ends it gives its verdict:
//
//	Judge       label, times and value by themselves: refused
//	own         of an asset that is not the organisation's: refused, as if there were no such asset
//	lastOfEach  of one asset, label and time in the batch the last one counts; the others are accepted. Where the
//	            last is held back or refused, the newest before it counts that is neither
//	plausible   more than the device or the connection can carry: held back
//	register    lower than the mark before, or a rise that the connection cannot carry: held back;
//	            higher than a later mark: refused
//	accepted    kept; a value that differs from what is kept is a correction, and the former one stays in
//	            the history
//
// Two batches that have one register at the same time are judged one after the other.
//
// Values are kept in millionths of the label's unit (kWh, kW, percent, degrees Celsius), spans in UTC. A reading may end at
// most [MaxAhead] in the future, begin at most [MaxAge] ago, and last at most [MaxLength].
//
// # Readings that are held back
//
// What is held back counts for nothing until an operator decides:
//
//	waiting ─► released        it counts, as a correction where another has its time
//	   │  └──► meter replaced  likewise, and the register restarts there: no difference is taken across
//	   └─────► discarded       it never counts
//
// With a register's reading those are released that wait after it and follow from it. [Tolerance] (10 %) is added to every
// rating, and [RegisterStep] (1 kWh) to every rise. At most [HeldMax] wait for one organisation; further ones are refused.
//
// # What readings cause
//
// In the transaction that keeps them, whatever waits for a reading becomes due: sessions and flex events to be settled, plans of
// cars that are plugged in, batteries, tanks and heat pumps. The commit notifies their jobs; a lost notification costs a job's
// period. A reading that is sent again unchanged causes nothing new.
//
// # Retention
//
// Purge deletes readings after [KeptFor] by the true clock, some at a time. What was refused is counted by asset, label,
// day and reason, with an example, for 62 days.
package reading
