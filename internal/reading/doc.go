// Package reading is the service of readings from meters and devices. It accepts or refuses
// each reading, stores the history of what was known when, says which readings are missing,
// and deletes readings after their retention. One bad reading never fails the rest of its
// batch.
//
// # From a reading to the database
//
// Service.Store stores a batch of up to [BatchMax] readings in one transaction. Each reading
// passes these steps; the first that ends it gives its verdict:
//
//	Judge           label, times and value by themselves: refused
//	checkOwnership  of an asset that is not the organisation's: refused, as if there were no such asset
//	keepLatest      of one asset, label and time in the batch the last one counts; the others are accepted. Where
//	                the last is held back or refused, the newest before it counts that is neither
//	checkPlausible  more than the device or the connection can carry: held back
//	checkRegisters  lower than the mark before, or a rise that the connection cannot carry: held back;
//	                higher than a later mark: refused
//	accepted        stored; a value that differs from the stored one is a correction, and the former one stays in
//	                the history
//
// Two batches with readings of one register at the same time are judged one after the other.
//
// Values are stored in millionths of the label's unit (kWh, kW, percent, degrees Celsius),
// spans in UTC. A reading may end at most [MaxAhead] in the future, begin at most [MaxAge]
// ago, and last at most [MaxLength].
//
// # Readings that are held back
//
// A reading that is held back is not used until an operator decides:
//
//	waiting ─► released        it counts, as a correction where another has its time
//	   │  └──► meter replaced  likewise, and the register restarts there: no difference is taken across
//	   └─────► discarded       it never counts
//
// When a register's reading is released, later ones that wait and are consistent with it are
// released too. [Tolerance] (10 %) is added to every rating, and [RegisterStep] (1 kWh) to
// every rise. At most [HeldMax] readings wait for one organisation; further ones are refused.
//
// # What readings cause
//
// The transaction that stores them also marks as due the work that waits for a reading:
// sessions and flex events to be settled, plans of plugged-in cars, batteries, tanks and heat
// pumps. The commit notifies their jobs; if a notification is lost, the work is found at the
// job's period. A reading that is sent again unchanged causes nothing.
//
// # Retention
//
// Purge deletes readings after [Retention] by the true clock, in bounded steps. Refused readings
// are counted by asset, label, day and reason, with an example, for 62 days.
package reading
