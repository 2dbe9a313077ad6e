package reward

// PaymentDay is paymentDay, for tests.
var PaymentDay = paymentDay

// PausedStay is assumedStay, for tests.
var PausedStay = assumedStay
