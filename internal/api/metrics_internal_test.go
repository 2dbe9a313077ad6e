package api

import "testing"

// TestDatabaseFails: metrics that could be gathered in part are answered where they say that the database fails.
func TestDatabaseFails(t *testing.T) {
	const other = "flexd_exceptions{kind=\"halted\"} 1\n"
	for text, want := range map[string]bool{
		"":    false,
		other: false,
		other + "flexd_exceptions{kind=\"database_failing\"} 0\n": false,
		other + "flexd_exceptions{kind=\"database_failing\"} 1\n": true,
	} {
		if got := databaseFails([]byte(text)); got != want {
			t.Errorf("of %q it says %v", text, got)
		}
	}
}
