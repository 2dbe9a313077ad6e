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

// FillDisk has the database fail as on a full disk at what happens to rows of a table, as "UPDATE ON outbox", until the returned function
// is called.
func (s *Seed) FillDisk(happens string) func() {
	s.t.Helper()
	*s.n++
	name := fmt.Sprintf("fill_disk_%d", *s.n)

	// A table that has given out its last id has SQLite fail with the error of a full disk.
	if !s.postgres {
		s.Exec(`CREATE TABLE ` + name + ` (id INTEGER PRIMARY KEY AUTOINCREMENT)`)
		s.Exec(`INSERT INTO ` + name + ` VALUES (9223372036854775807)`)
		s.Exec(fmt.Sprintf(`CREATE TRIGGER %s_at BEFORE %s BEGIN INSERT INTO %s (id) VALUES (NULL); END`, name, happens, name))

		return func() {
			s.Exec(`DROP TRIGGER ` + name + `_at`)
			s.Exec(`DROP TABLE ` + name)
		}
	}

	s.Exec(`CREATE FUNCTION ` + name + `() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted' USING ERRCODE = 'disk_full'; END $$`)
	s.Exec(fmt.Sprintf(`CREATE TRIGGER %s BEFORE %s FOR EACH ROW EXECUTE FUNCTION %s()`, name, happens, name))

	return func() { s.Exec(`DROP FUNCTION ` + name + `() CASCADE`) }
}
