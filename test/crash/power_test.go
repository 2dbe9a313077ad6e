package crash

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"flexd/internal/store"
)

// forgetful is a disk that keeps only what was synced. When its power is cut, each write
// since the last sync is lost, kept, or torn at a sector, by chance.
type forgetful struct {
	random *rand.Rand
	files  map[string]*platter
}

// platter is one file: what a reader sees, what has been synced, and the writes in between.
type platter struct {
	written, synced []byte
	since           []change
}

// change is a write at an offset, or a new length.
type change struct {
	at     int64
	data   []byte
	length bool
}

const sector = 512

func (c change) on(b []byte) []byte {
	if c.length {
		return grown(b, c.at)[:c.at]
	}
	b = grown(b, c.at+int64(len(c.data)))
	copy(b[c.at:], c.data)
	return b
}

func grown(b []byte, n int64) []byte {
	if short := n - int64(len(b)); short > 0 {
		b = append(b, make([]byte, short)...)
	}
	return b
}

func (d *forgetful) cut() {
	for _, p := range d.files {
		for _, c := range p.since {
			switch d.random.IntN(3) {
			case 0: // lost
			case 1:
				p.synced = c.on(p.synced)
			case 2:
				if !c.length {
					c.data = c.data[:d.random.IntN(len(c.data)/sector+1)*sector]
				}

				p.synced = c.on(p.synced)
			}
		}

		p.since, p.written = nil, append([]byte(nil), p.synced...)
	}
}

func (d *forgetful) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if d.files[name] == nil {
		if flags&vfs.OPEN_CREATE == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		d.files[name] = &platter{}
	}
	return d.files[name], flags, nil
}

func (d *forgetful) Delete(name string, _ bool) error {
	delete(d.files, name)
	return nil
}

func (d *forgetful) Access(name string, _ vfs.AccessFlag) (bool, error) {
	return d.files[name] != nil, nil
}

func (d *forgetful) FullPathname(name string) (string, error) { return name, nil }

func (p *platter) change(c change) {
	p.written, p.since = c.on(p.written), append(p.since, c)
}

func (p *platter) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(p.written)) {
		return 0, io.EOF
	}
	if n := copy(b, p.written[at:]); n < len(b) {
		return n, io.EOF
	}
	return len(b), nil
}

func (p *platter) WriteAt(b []byte, at int64) (int, error) {
	p.change(change{at: at, data: append([]byte(nil), b...)})
	return len(b), nil
}

func (p *platter) Truncate(n int64) error {
	p.change(change{at: n, length: true})
	return nil
}

func (p *platter) Sync(vfs.SyncFlag) error {
	for _, c := range p.since {
		p.synced = c.on(p.synced)
	}
	p.since = nil
	return nil
}

func (p *platter) Close() error                                    { return nil }
func (p *platter) Size() (int64, error)                            { return int64(len(p.written)), nil }
func (p *platter) Lock(vfs.LockLevel) error                        { return nil }
func (p *platter) Unlock(vfs.LockLevel) error                      { return nil }
func (p *platter) CheckReservedLock() (bool, error)                { return false, nil }
func (p *platter) SectorSize() int                                 { return sector }
func (p *platter) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }

// tally is what a run of power cuts came to.
type tally struct{ cuts, acked, lost, corrupt int }

// powerCuts commits into the store's own schema with the pragmas, cuts the power at some
// commit, and looks for what was acknowledged, over and over on one disk. The last cut is looked at too.
func powerCuts(t *testing.T, seed uint64, cuts int, pragmas []string) (sum tally) {
	t.Helper()
	d := &forgetful{random: rand.New(rand.NewPCG(seed, 0)), files: map[string]*platter{}}
	name := fmt.Sprintf("forgetful%d-%d-%s", seed, cuts, strings.Join(pragmas, ""))
	vfs.Register(name, d)
	defer vfs.Unregister(name)
	var acked []string

	for ; ; sum.cuts++ {
		db, err := open(t, name, pragmas)
		if err != nil {
			sum.corrupt++
			return sum
		}
		kept, whole := names(db)
		if !whole {
			sum.corrupt++
			return sum
		}

		for _, n := range acked {
			if !kept[n] {
				sum.lost++
			}
		}
		if sum.cuts == cuts {
			return sum
		}
		acked = acked[:0]
		for n := range kept {
			acked = append(acked, n)
		}

		for range 20 + d.random.IntN(200) {
			n := fmt.Sprintf("%032x", d.random.Uint64())
			if err := db.Exec(`INSERT INTO org (id, name, created_at) VALUES (x'` + n + `', '` + n + `', 0)`); err != nil {
				sum.corrupt++
				return sum
			}
			acked = append(acked, n)
			sum.acked++
		}
		d.cut() // the process goes down with the power: nothing is closed
	}
}

func open(t *testing.T, name string, pragmas []string) (*sqlite3.Conn, error) {
	db, err := sqlite3.Open("file:/flexd.db?vfs=" + name)
	if err != nil {
		return nil, err
	}
	if err := db.Exec("PRAGMA locking_mode = exclusive"); err != nil { // this disk has no locks of its own
		return nil, err
	}

	for _, p := range pragmas {
		word, value, _ := strings.Cut(strings.TrimSuffix(p, ")"), "(")
		if err := db.Exec("PRAGMA " + word + " = " + value); err != nil {
			return nil, err
		}
	}

	if err := db.Exec("PRAGMA wal_autocheckpoint = 200"); err != nil {
		return nil, err
	}
	schema, err := os.ReadFile("../../internal/store/migration/00001_core.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(schema), "CREATE TABLE org (")
	table, _, _ = strings.Cut(table, ");")
	err = db.Exec("CREATE TABLE IF NOT EXISTS org (" + strings.ReplaceAll(table, " UUID", " BLOB") + ")")
	return db, err
}

// names returns the records that are there, and whether the file is whole.
func names(db *sqlite3.Conn) (map[string]bool, bool) {
	kept := map[string]bool{}
	st, _, err := db.Prepare("SELECT name FROM org")
	if err != nil {
		return nil, false
	}

	for st.Step() {
		kept[st.ColumnText(0)] = true
	}
	if st.Close() != nil {
		return nil, false
	}
	check, _, err := db.Prepare("PRAGMA integrity_check")
	if err != nil {
		return nil, false
	}
	defer check.Close()
	return kept, check.Step() && check.ColumnText(0) == "ok"
}

func TestPowerCut(t *testing.T) {
	var all tally
	for seed := range uint64(times(t, 5)) {
		got := powerCuts(t, seed, 20, store.SQLitePragmas)
		all = tally{all.cuts + got.cuts, all.acked + got.acked, all.lost + got.lost, all.corrupt + got.corrupt}
	}
	if all.lost > 0 || all.corrupt > 0 {
		t.Errorf("%+v: acknowledged commits are gone", all)
	}
	t.Logf("%d power cuts, %d acknowledged commits, %d lost, %d corruptions", all.cuts, all.acked, all.lost, all.corrupt)
}

// Less than a full sync loses acknowledged commits on this disk; a harness that did not see
// that would prove nothing.
func TestPowerCut_PlantedFaults(t *testing.T) {
	for _, weak := range []string{"synchronous(OFF)", "synchronous(NORMAL)"} {
		var pragmas []string
		for _, p := range store.SQLitePragmas {
			if strings.HasPrefix(p, "synchronous") {
				p = weak
			}
			pragmas = append(pragmas, p)
		}

		got := powerCuts(t, 1, 20, pragmas)
		if got.lost+got.corrupt == 0 {
			t.Errorf("with %s nothing was lost: %+v", weak, got)
		}
		t.Logf("%s: %+v", weak, got)
	}
}
