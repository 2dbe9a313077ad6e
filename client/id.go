package client

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ParseID reads a UUID as an id of any of the client's kinds:
//
//	site, err := client.ParseID[client.SiteID]("019ad3c0-7e3c-7c31-9f0e-3b1a5c0d2e4f")
func ParseID[ID ~[16]byte](text string) (ID, error) {
	var id [16]byte
	digits := strings.ReplaceAll(text, "-", "")

	_, err := hex.Decode(id[:], []byte(digits[:min(len(digits), 32)]))
	if err != nil || len(digits) != 32 || !strings.EqualFold(formatID(id), text) {
		return ID{}, fmt.Errorf(
			"%q is not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
			text,
		)
	}

	return ID(id), nil
}

// formatID writes an id as a UUID in lower case.
func formatID(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
