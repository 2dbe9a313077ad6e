// Package product takes in the products that a system operator or a distribution operator buys: a window of time, a
// volume and a price.
//
// A product is imported, from a CSV file or one by one. The sites that it is for are invited by a push to the endpoint
// invitation, in the same transaction. While answers are taken a household accepts or refuses, and sites that come
// later are invited too (InviteLate). When answers have ended the product becomes one instruction of package control
// (Send), which calls those who take part. What an operator withdraws, or the other party changes, stops the
// instruction or replaces the product.
//
// A product waits to be sent by its mark grid_product.send_at. Whoever sends it compares the mark in the transaction
// that sends the instruction (Tx.ProductDone), so that two processes send it once. What cannot be an instruction is
// noted as the product's problem, and not tried again.
package product
