// Package forecast estimates what a home will draw and what its solar panels will give, by
// half-hours, from past meter readings.
//
// The forecast of a half-hour is a weighted mean of what was metered at the same time of day
// in the last six weeks. Each earlier day has a tenth less weight than the day after it, and a
// day of the other class (working or not) three tenths of the weight of one of the same class.
// For a load, the time of day is London's wall time. For solar panels it is UTC, which follows
// the sun, all days are of one class, and what they gave earlier in a day raises or lowers the
// forecast of the rest of that day.
//
// On the sample household of the README, a London home that draws 0.25 kWh in a half-hour on
// average, the mean error is 0.12 kWh; a forecast by the same half-hour of the day before has
// 0.15. Other decays from 0.8 to 1 and other weights from 0 to 1 change it by at most 3 %, so
// nothing finer is used.
//
// FleetHistory forecasts fleets of cars in the same way, from their past sessions at chargers,
// with the certainty: what is drawn, and what could at least be left out or drawn in addition,
// with confidences from 50 to 99 %. It also measures how often such forecasts of past days
// came true.
package forecast
