package reward

// PaymentDay is paymentDay, for tests.
var PaymentDay = paymentDay

// PausedStay is pausedStay, for tests.
var PausedStay = pausedStay
