package flex

import "strings"

// Keepable returns a text that somebody else had a part in as any database keeps it: in UTF-8, and without the character
// of the number 0.
func Keepable(text string) string {
	return strings.ReplaceAll(
		strings.ToValidUTF8(text, "\uFFFD"),
		"\x00",
		"\uFFFD",
	)
}
