package access_test

import (
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// A passkey that is not the operator's or not right, shown to confirm who they are, is in the audit log.
func TestConfirmOperatorPasskey_Audit(t *testing.T) {
	each(t, func(d *service) {
		d.Keys = storetest.Keys(d)
		if _, err := d.AddOperator(d.Context(), "ada", "a long password", access.Admin); err != nil {
			d.Fatal(err)
		}
		login, err := d.LoginOperator(d.Context(), "ada", "a long password", "192.0.2.1")
		if err != nil {
			d.Fatal(err)
		}

		err = d.ConfirmOperatorPasskey(d.Context(), login.Token, "http://localhost", "{}", "192.0.2.1")
		if flex.KindOf(err) != flex.Unauthorized {
			d.Errorf("confirmed: %v", err)
		}
		log, err := d.Audit(d.Context(), access.AuditFilter{Who: "ada", Act: "confirm who it is", Limit: 10})
		if err != nil || len(log.Acts) != 1 || log.Acts[0].Source != "192.0.2.1" {
			d.Errorf("in the audit log: %+v, %v", log.Acts, err)
		}
	})
}
