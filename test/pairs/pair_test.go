package pairs_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// stage is where a life is played, anew each time. On PostgreSQL there are two processes; SQLite has one writer, and
// transactions follow each other there.
type stage struct {
	t       *testing.T
	life    *life
	seed    *storetest.Seed
	first   *process
	second  *process
	again   func()              // brings the life back
	records string              // the statement that reads all records
	written map[string][]string // tables, by the operation's name
}

// outcome is what came of operations: what each answered, and all records.
type outcome struct {
	answers []string
	rows    []string
}

func (o outcome) String() string {
	return strings.Join(append(slices.Clone(o.answers), o.rows...), "\n")
}

// drawn are columns that are drawn, sealed, or count what was looked at.
var drawn = []string{"version", "hash", "secret", "sealed", "random", "took", "seal", "nonce", "token", "form", "holder", "secret_hash"}

// records is the statement that reads every row as a text.
func (s *stage) columns() string {
	text := `COALESCE(CASE WHEN typeof(%[1]s) = 'blob' THEN hex(%[1]s) ELSE CAST(%[1]s AS TEXT) END, '-')`
	if s.first.db.Engine() == "postgres" {
		text = `COALESCE(CAST(%[1]s AS TEXT), '-')`
	}

	of := s.seed.Columns()
	var reads []string
	for _, table := range s.seed.Tables() {
		var parts []string
		for _, c := range of[table] {
			if !slices.Contains(drawn, c) && table+"."+c != "mail.text" && table+"."+c != "org.register" {
				parts = append(parts, fmt.Sprintf(`'%s=' || `+text, c))
			}
		}

		if table != "goose_db_version" && table != "seal_key" && table != "person_key" && len(parts) > 0 {
			reads = append(reads, `SELECT '`+table+`: ' || `+strings.Join(parts, ` || ' ' || `)+` FROM `+table)
		}
	}

	if s.first.db.Engine() != "postgres" {
		return strings.Join(reads, " UNION ALL ")
	}

	// a function's statements are planned once
	s.seed.Exec(`CREATE FUNCTION kept.look() RETURNS SETOF text LANGUAGE plpgsql AS $look$ BEGIN RETURN QUERY ` + strings.Join(reads, `; RETURN QUERY `) + `; END $look$`)
	return `SELECT * FROM kept.look()`
}

// anyID is an id, or what is sealed, in a text.
var anyID = regexp.MustCompile(`(?i)(\\x)?\b[0-9a-f]{32,}\b|(\\x)[0-9a-f]{32,}\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// anyReference is what a payment is named by to the bank.
var anyReference = regexp.MustCompile(`FLEXD[0-9A-Z]{10}`)

// named replaces the ids in a text by the names of what they are of.
func (l *life) named(text string) string {
	text = anyReference.ReplaceAllString(text, "<reference>")
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		plain := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(id, `\x`), "-", ""))
		if name := l.names[plain]; name != "" {
			return "<" + name + ">"
		}
		return "<new>"
	})
}

// look reads all records.
func (s *stage) look() []string {
	s.t.Helper()
	rows := s.seed.Strings(s.records)
	for i := range rows {
		rows[i] = s.life.named(rows[i])
	}
	slices.Sort(rows)
	return rows
}

// answer says how an operation ended.
func (s *stage) answer(a act, err error) string {
	if err == nil {
		return a.name + ": done"
	}
	if kind := flex.KindOf(err); kind != flex.Internal {
		return fmt.Sprintf("%s: %v: %s", a.name, kind, s.life.named(err.Error()))
	}
	s.t.Errorf("%s fails: %v", a.name, err)
	return a.name + ": an internal failure"
}

// inOrder is what comes of operations one after the other.
func (s *stage) inOrder(as ...act) outcome {
	s.t.Helper()
	s.again()
	var o outcome
	for _, a := range as {
		o.answers = append(o.answers, s.answer(a, a.do(s.t.Context(), s.first, s.life)))
	}
	o.answers = append(o.answers, s.life.saids()...)
	slices.Sort(o.answers)
	o.rows = s.look()
	return o
}

// waitMost is how long two operations may take that wait for nobody.
const waitMost = 2 * time.Minute

// atOnce is what comes of two operations that two processes do at the same time: neither writes before both have
// gone as far as they can.
func (s *stage) atOnce(a, b act, tables ...string) outcome {
	s.t.Helper()
	s.again()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMost)
	defer cancel()
	results := [2]error{}
	done := make(chan int, 2)
	begin := func(i int, p *process, x act) {
		go func() {
			results[i] = x.do(ctx, p, s.life)
			done <- i
		}()
	}

	if s.first.db.Engine() != "postgres" {
		begin(0, s.first, a)
		begin(1, s.first, b)
		<-done
		<-done
	} else {
		gate := s.seed.ShutGate(tables...)
		defer gate.Open()

		begin(0, s.first, a)
		s.rests(ctx, gate, done, 1)
		begin(1, s.second, b)
		s.rests(ctx, gate, done, 2)
		gate.Open()
		<-done
		<-done
	}

	o := outcome{answers: []string{s.answer(a, results[0]), s.answer(b, results[1])}}
	o.answers = append(o.answers, s.life.saids()...)
	slices.Sort(o.answers)
	o.rows = s.look()
	return o
}

// rests waits until so many operations are over or wait for a lock.
func (s *stage) rests(ctx context.Context, gate *storetest.Gate, done chan int, n int) {
	for len(done)+gate.Waiting() < n && ctx.Err() == nil {
		runtime.Gosched()
	}
}

// differences are the lines that one outcome has and the other has not.
func differences(got, want outcome) string {
	var lines []string
	less := func(a, b []string, mark string) {
		count := map[string]int{}
		for _, line := range b {
			count[line]++
		}
		for _, line := range a {
			if count[line]--; count[line] < 0 {
				lines = append(lines, mark+line)
			}
		}
	}

	less(append(got.answers, got.rows...), append(want.answers, want.rows...), "+ ")
	less(append(want.answers, want.rows...), append(got.answers, got.rows...), "- ")
	return strings.Join(lines, "\n")
}

// sound holds the records against all laws.
func (s *stage) sound(what string) {
	s.t.Helper()
	findings, err := s.first.db.Verify(s.t.Context())
	if err != nil {
		s.t.Error(err)
	}
	for _, f := range findings {
		s.t.Errorf("%s: %s", what, f)
	}
}

// An operation gives the same each time, and keeps all laws. PostgreSQL has each third, or all with FLEXD_LONG.
func TestPairs_Alone(t *testing.T) {
	eachKind(t, func(t *testing.T, s *stage, as []act) {
		for i, a := range as {
			if storetest.LeftOut(s.first.db.Engine(), i) {
				continue
			}

			t.Run(a.name, func(t *testing.T) {
				s.t = t
				one, two := s.inOrder(a), s.inOrder(a)
				t.Log(one.answers)
				if d := differences(one, two); d != "" {
					t.Errorf("the same again differs:\n%s", d)
				}
				s.sound(a.name)
			})
		}
	})
}

// eachKind plays the operations of each kind on each engine.
func eachKind(t *testing.T, do func(t *testing.T, s *stage, as []act)) {
	for _, of := range kinds {
		t.Run(string(of), func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) { do(t, open(t, url, of), acts(of)) })
		})
	}
}

// pairs calls a function with every two operations, and each with itself.
func pairs(as []act, do func(a, b act)) {
	for i, a := range as {
		for _, b := range as[i:] {
			do(a, b)
		}
	}
}

// serial is what comes of two operations in each order; the second is asked for when the first is not it.
type serial struct{ orders [2]*outcome }

// unlike is what an outcome has that comes of neither order, or nothing.
func (s *stage) unlike(got outcome, a, b act, known *serial) string {
	s.t.Helper()
	var least string
	for i, as := range [2][2]act{{a, b}, {b, a}} {
		if known.orders[i] == nil {
			known.orders[i] = new(s.inOrder(as[0], as[1]))
			if s.second == nil && long() {
				s.sound(as[0].name + " before " + as[1].name)
			}
		}

		d := differences(got, *known.orders[i])
		if d == "" {
			return ""
		}
		if least == "" || len(d) < len(least) {
			least = d
		}
	}
	return least
}

// compare does two operations at once, and returns what comes of it and of neither order. On PostgreSQL both first wait
// before they write at all; with each, then each waits before it writes a table while the other goes on: each third of the
// tables, or all with FLEXD_LONG. Of a pair that may differ one difference is enough.
func (s *stage) compare(a, b act, each bool) (faults []string) {
	s.t.Helper()
	var known serial
	if d := s.unlike(s.atOnce(a, b), a, b, &known); d != "" {
		faults = append(faults, "neither had written:\n"+d)
	}
	if !each || s.second == nil {
		return faults
	}

	for i, as := range [2][2]act{{a, b}, {b, a}} {
		if i == 1 && a.name == b.name {
			break
		}
		for n, table := range s.writes(as[0]) {
			differs := mayDiffer[a.name+" and "+b.name] == foundFirst
			if !differs && storetest.LeftOut("postgres", n) {
				continue
			}
			if differs && len(faults) > 0 && !long() {
				return faults
			}

			if d := s.unlike(s.atOnce(as[0], as[1], table), a, b, &known); d != "" {
				faults = append(faults, as[0].name+" was about to write "+table+":\n"+d)
			}
		}
	}
	return faults
}

// writes are the tables whose records an operation changes, found once.
func (s *stage) writes(a act) []string {
	if tables, ok := s.written[a.name]; ok {
		return tables
	}

	s.again()
	before := outcome{rows: s.look()}
	var tables []string
	for line := range strings.SplitSeq(differences(s.inOrder(a), before), "\n") {
		table, _, found := strings.Cut(strings.TrimLeft(line, "+- "), ": ")
		if found && table != a.name && !strings.Contains(table, " ") && !slices.Contains(tables, table) {
			tables = append(tables, table)
		}
	}
	s.written[a.name] = tables
	return tables
}

// sampled is how many pairs there are for each that is run when time is short. Of operations beside themselves one of so many
// is; on SQLite, where one writes at a time, one of more.
const sampled, besideItselfOnPostgres, besideItself = 128, 6, 9

func long() bool { return os.Getenv("FLEXD_LONG") != "" }

// Two operations at once give what they give one after the other: the same answers and the same records, none half, and no
// failure that is not said. A sample, or all with FLEXD_LONG, and then with each table that either writes.
func TestPairs_AtOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, s *stage, as []act) {
		n, selves, every := 0, 0, sampled
		if s.second == nil { // where a trial takes longer, and finds less
			every *= 4
		}

		pairs(as, func(a, b act) {
			n++
			name := a.name + " and " + b.name
			why := mayDiffer[name]
			known := why != "" || slices.Contains(found, name)
			whole := long() || known
			run := whole || n%every == 0
			if a.name == b.name {
				selves++
				run = run || s.second != nil && selves%besideItselfOnPostgres == 0 || s.second == nil && selves%besideItself == 0
			}
			if !run {
				return
			}

			t.Run(name, func(t *testing.T) {
				s.t = t
				faults := s.compare(a, b, whole)

				switch {
				case why == "":
					for _, f := range faults {
						t.Errorf("at once comes what comes in neither order; %s", f)
					}
				case len(faults) == 0 && s.second != nil && why == foundFirst: // a gate sees to the order; nothing does for the audit log
					t.Errorf("at once comes what comes in one of the orders: it need not differ, as %s", why)
				default:
					t.Log(why)
				}
			})
		})

		s.t = t
		if s.second != nil {
			t.Logf("%d deadlocks", s.seed.Count(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
		}
	})
}

// The pairs that are named are there.
func TestPairs_Named(t *testing.T) {
	unseen := map[string]bool{}
	for _, name := range slices.Concat(found, slices.Collect(maps.Keys(mayDiffer))) {
		unseen[name] = true
	}
	for _, of := range kinds {
		pairs(acts(of), func(a, b act) { delete(unseen, a.name+" and "+b.name) })
	}
	for name := range unseen {
		t.Errorf("%s are no two operations", name)
	}
}

// found are pairs that went wrong once: they are run always, and with tables that either writes.
var found = []string{
	"offboard and read the pause",
	"offboard and correct a reading",
	"offboard and replace the meter",
	"delete the charger and read the pause",
	"delete the charger and correct a reading",
	"delete the charger and replace the meter",
	"merge the home and withdraw consent",
	"merge the home and change the charger",
	"offboard and delete the charger",
	"offboard and create an asset",
	"offboard the payer and create the spare at the payer",
	"unenrol and delete the charger",
	"change the password and log in",
}

// mayDiffer says of pairs why they may give what they give in neither order. One of foundFirst that does not any more is an error.
var mayDiffer = map[string]string{
	"date the charger's power and settle events":   foundFirst,
	"repair the charger's power and settle events": foundFirst,
	"log in and log in":                            twoSteps,
	"remove the operator and log in":               twoSteps,
}

const twoSteps = "an act is in the audit log when it begins, by whom, and when it ends, and another may come between"

const foundFirst = "an event is found in one transaction and settled in another, and the change may come between: it is found by the former power, and settled by the later"

// careless gives up what is owed without a lock: it looks at the balance, and posts.
func careless(by string) act {
	return act{"careless " + by, func(ctx context.Context, p *process, l *life) error {
		return p.db.Write(ctx, l.org, func(tx *store.Tx) error {
			balance, err := tx.Balance(ctx, l.debtor)
			if err != nil || balance >= 0 {
				return err
			}
			t := ledger.Booked{}
			t.Key, t.Kind, t.SiteID, t.Time, t.Cause = by, ledger.Correction, l.debtor, flex.Span{From: tx.Now()}, ledger.Cause{By: by, Reason: "careless"}
			t.Postings = ledger.WrittenOff(-balance, ledger.RewardsPayable)
			_, err = tx.Post(ctx, &t)
			return err
		})
	}}
}

// A lock that is left out is found, by itself and beside an operation that has it.
func TestPairs_Planted(t *testing.T) {
	s := open(t, storetest.Postgres(t), ofOrganisation)
	writeOff := ofMoney()[slices.IndexFunc(ofMoney(), func(a act) bool { return a.name == "write off" })]
	for _, other := range []act{careless("bob"), writeOff} {
		if faults := s.compare(careless("ann"), other, true); len(faults) == 0 {
			t.Errorf("a write-off without a lock is not found beside %s", other.name)
		}
	}
	if faults := s.compare(writeOff, writeOff, true); len(faults) > 0 {
		t.Errorf("found without a fault: %s", faults)
	}
}

func open(t *testing.T, url string, of kind) *stage {
	t.Helper()
	s := &stage{t: t, written: map[string][]string{}}
	if !strings.HasPrefix(url, "sqlite:") { // to compile the statement that reads all records takes longer than to run it
		if err := storetest.Exec(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$`); err != nil {
			t.Fatal(err)
		}
	}

	s.life = begin(t, url, of)
	options := store.Options{Environment: flex.Sandbox, Now: func() time.Time { return s.life.now }}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		image, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		s.again = func() {
			s.t.Helper()
			path := filepath.Join(s.t.TempDir(), "life.db")
			if err := os.WriteFile(path, image, 0o600); err != nil {
				s.t.Fatal(err)
			}
			s.first = newProcess(storetest.Fresh(s.t, "sqlite:"+path, options))
			s.seed = storetest.At(s.t, s.first.db, "sqlite:"+path)
		}

		s.again()
	} else {
		s.first, s.second = newProcess(storetest.Fresh(t, url, options)), newProcess(storetest.Fresh(t, url, options))
		s.seed = storetest.At(t, s.first.db, url)
		back, trials := s.seed.Keep().Back, 0
		s.again = func() {
			back()
			// What a process remembers of the assets it keeps under this number, which never comes again as the records do here.
			trials++
			s.seed.Exec(`UPDATE org SET register = register + $1`, 1000*trials)
		}
	}

	s.records = s.columns()
	return s
}
