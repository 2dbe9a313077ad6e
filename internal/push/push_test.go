package push_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/internal/store"
)

func TestPush_Arrives(t *testing.T) {
	each(t, func(h *house) {
		defer h.work(h.desk)()
		e := h.endpoint(nil)
		a := h.chargers(1)[0]
		id := h.plan(9*time.Hour, a)[0]
		time.Sleep(time.Second)
		synctest.Wait()
		got := e.all()
		if len(got) != 1 {
			t.Fatalf("%d pushes arrived", len(got))
		}
		g := got[0]
		want := `{"connectorId":1,"csChargingProfiles":{"chargingProfileId":`
		if g.id != id.String() || g.asset != a.String() || g.generation != 1 || g.path != "/chargers/x"+a.String()+"?id="+a.String() || !strings.HasPrefix(g.body, want) {
			t.Errorf("got %+v", g)
		}
		if s := h.state(id); s != store.Delivered {
			t.Errorf("state %s", s)
		}
	})
}
