package storetest

import "fmt"

// Refuse has the database refuse what happens to the rows of a table of which a column is an id, as "UPDATE OF posted ON reckoning",
// until the returned function is called.
func (s *Seed) Refuse(
	happens, column string,
	id []byte,
) func() {
	s.t.Helper()
	*s.n++
	name := fmt.Sprintf("refuse_%d", *s.n)

	if !s.postgres {
		s.Exec(fmt.Sprintf(
			`CREATE TRIGGER %s BEFORE %s WHEN NEW.%s = X'%x' BEGIN SELECT RAISE(ABORT, 'planted'); END`,
			name,
			happens,
			column,
			id,
		))

		return func() { s.Exec(`DROP TRIGGER ` + name) }
	}

	s.Exec(`CREATE FUNCTION ` + name + `() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$`)
	s.Exec(fmt.Sprintf(
		`CREATE TRIGGER %s BEFORE %s FOR EACH ROW WHEN (NEW.%s = '%x'::uuid) EXECUTE FUNCTION %s()`,
		name,
		happens,
		column,
		id,
		name,
	))

	return func() { s.Exec(`DROP FUNCTION ` + name + `() CASCADE`) }
}
