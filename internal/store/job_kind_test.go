package store_test

import (
	"testing"

	"flexd/internal/store"
)

// A job does not go with its organisation to another flexd, so no kind of job may be about a
// record that does: its work would be left behind.
func TestJobKinds_StayBehind(t *testing.T) {
	about := map[store.JobKind]string{
		store.JobMail:       "mail",
		store.JobCloudLink:  "cloud_link",
		store.JobCloudToken: "cloud_token",
		store.JobAlert:      "alert_message",
		store.JobOpenADR:    "adr_notice",
	}

	for _, kind := range store.JobKinds {
		table := about[kind]
		if table == "" {
			t.Errorf("the kind %s has no table here: name the one that its subjects are rows of", kind)
		} else if !store.StaysBehind(table) {
			t.Errorf("a job of the kind %s stays behind when the %s that it is about goes with its organisation", kind, table)
		}
	}
}
