package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"flexd/internal/flex"
)

// TestFuse_LongChain has a car behind a main fuse whose client has accepted none of its schedules. If there are more of them than are read, its
// charger may follow one that is not known: it counts with its full power at any time, and another car has what the fuse then leaves.
func TestFuse_LongChain(t *testing.T) {
	for _, discharges := range []bool{false, true} {
		for number, unknown := range map[int]bool{499: false, 501: true} {
			t.Run(fmt.Sprintf("%d schedules, discharges %v", number, discharges), func(t *testing.T) {
				each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
					cars := h.fuse(10, 7400)
					if h.at(cars[0]); discharges {
						h.mayDischarge()
						h.soc(60)
					}

					h.publish("2026-01-10T18:00:00Z", night(12, 13, 14, 15)...)
					h.plugInAt(14, flex.Minimise)
					h.addEarlier(number - 1)
					h.at(cars[1]).plugInAt(22, flex.Minimise)

					current := h.look().Current
					over := slices.ContainsFunc(current.Charging(), func(s flex.Step) bool { return s.Limit > 2600 })
					if over == unknown {
						t.Errorf("the other car is sent %v", current.Steps)
					}
				})
			})
		}
	}
}

// addEarlier adds schedules of the asset's session before its newest, each like that one.
func (h *fixture) addEarlier(number int) {
	h.Helper()
	for _, table := range []string{"schedule", "session", "outbox"} {
		column := "asset_id"
		if table == "outbox" {
			column = "subject"
		}
		h.Exec(`UPDATE `+table+` SET generation = generation + 1000 WHERE `+column+` = $1`, h.asset.Bytes())
	}

	changed := []string{"event_id", "before_id", "generation"}
	same := slices.DeleteFunc(h.Columns()["schedule"], func(c string) bool { return slices.Contains(changed, c) })
	columns := strings.Join(same, ", ")

	newest := h.look().Current
	before := newest.EventID
	for i := range number {
		id := newest.EventID
		id[0], id[1] = 0x80|byte(i>>8), byte(i) // no other event has such an id
		h.Exec(`INSERT INTO schedule (event_id, generation, `+columns+`) SELECT $1, $2, `+columns+` FROM schedule WHERE event_id = $3`,
			id.Bytes(), newest.Generation-int64(i)-1, newest.EventID.Bytes())
		h.Exec(`UPDATE schedule SET before_id = $1 WHERE event_id = $2`, id.Bytes(), before.Bytes())
		before = id
	}
}
