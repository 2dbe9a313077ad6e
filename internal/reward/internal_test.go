package reward

// PaymentDay is paymentDay, for tests.
var PaymentDay = paymentDay
