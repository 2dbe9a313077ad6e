package flex

// StoredAnswer is the answer to a request that carried an idempotency key.
type StoredAnswer struct {
	Status int // 0 while the request is under way
	// as the transport wrote it; nil if it is not to be kept
	Answer []byte
	// ids of sites or assets that the answer may be about, likeliest first
	About []SiteID
}
