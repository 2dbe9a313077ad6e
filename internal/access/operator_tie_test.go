package access_test

import (
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestTieOperator_Taken: a subject that is another operator's is refused with a message that says so, also where somebody signed in as it
// since it was looked for.
func TestTieOperator_Taken(t *testing.T) {
	each(t, func(d *service) {
		const issuer = "https://id.example.com"
		for _, name := range []string{"ada", "bob"} {
			if _, err := d.AddOperator(t.Context(), name, "", access.Admin); err != nil {
				t.Fatal(err)
			}
		}

		if err := d.LinkIdentity(t.Context(), "ada", issuer, "1"); err != nil {
			t.Fatal(err)
		}
		d.kind(d.LinkIdentity(t.Context(), "bob", issuer, "1"), flex.Conflict)

		err := d.DB.WriteAll(t.Context(), func(all *store.All) error {
			bob, err := all.OperatorNamed(t.Context(), "bob")
			if err != nil {
				return err
			}
			return all.LinkIdentity(t.Context(), bob.ID, issuer, "1")
		})
		d.kind(err, flex.Conflict)
	})
}
