package store

// bearerRecord is the sealed part of adr_object.
type bearerRecord struct {
	Tokens map[string]string `json:"tokens"` // by the webhook's URL
}
