package access_test

import (
	"errors"
	"testing"

	"flexd/internal/access"
)

// A code of an operator who has no second step, or whose second step was reset meanwhile, is a wrong one and no fault of ours.
func TestTwoStep_NotBegun(t *testing.T) {
	each(t, func(d *service) {
		password, err := d.AddOperator(t.Context(), "ada", "", access.Admin)
		if err != nil {
			t.Fatal(err)
		}

		login, err := d.LoginOperator(t.Context(), "ada", password, "a")
		if err != nil {
			t.Fatal(err)
		}

		who, err := d.IdentifyOperator(t.Context(), login.Token)
		if err != nil {
			t.Fatal(err)
		}

		if _, err := d.ConfirmTwoStep(t.Context(), who, "123456"); !errors.Is(err, access.ErrCode) {
			t.Errorf("a code before there is a secret: %v", err)
		}
	})
}
