package bankfile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
)

// publishedSchema is the schema as the ISO 20022 Registration Authority publishes it; see
// testdata/README.md for its source and terms.
const publishedSchema = "testdata/pain.001.001.09.xsd"

// schemaFaults validates files against the published schema with libxml2's xmllint, and
// returns what it says of each one that is not valid, by the file's name. It skips where
// xmllint is missing, or fails where nothing may be skipped.
func schemaFaults(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	lint, err := exec.LookPath("xmllint")
	if err != nil && os.Getenv("FLEXD_TEST_STRICT") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	args := []string{"--noout", "--nonet", "--schema", publishedSchema}

	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), lint, args...)
	cmd.Stderr = &said
	err = cmd.Run()
	faults, verdicts := map[string]string{}, 0

	for line := range strings.Lines(said.String()) {
		line = strings.TrimSpace(strings.ReplaceAll(line, dir+string(filepath.Separator), ""))
		name, valid := strings.CutSuffix(line, " validates")
		if !valid {
			name, _, _ = strings.Cut(line, ":")
			name, _, _ = strings.Cut(name, " ")
		}
		if _, known := files[name]; !known {
			continue
		}

		if valid {
			verdicts++
			continue
		}
		if faults[name] == "" {
			verdicts++
		}

		faults[name] += line + "\n"
	}
	if verdicts != len(files) || (err == nil) != (len(faults) == 0) {
		t.Fatalf("%d verdicts on %d files, %v\n%.2000s", verdicts, len(files), err, said.String())
	}
	return faults
}

// randomFile draws a file of what may come: every kind of payer, names in many writings,
// amounts from a penny to the most of any bank.
func randomFile(r *rand.Rand) bankfile.File {
	letters := []rune("AbzZ 09-.,'’&/\\?:()+=<>\"%éßŁøÅ東я\t–")
	name := func() string {
		text := []rune{'N'} // without any Latin letter a file is refused, which another test shows
		for range 1 + r.IntN(160) {
			text = append(text, letters[r.IntN(len(letters))])
		}
		return string(text)
	}

	digits := func(n int) string { return fmt.Sprintf("%0*d", n, r.Int64N(1_000_000_000)%pow10(n)) }
	payers := []bankfile.Payer{
		{SortCode: digits(6), Number: digits(8)}, {IBAN: "GB29NWBK60161331926819"}, {IBAN: "GB29NWBK60161331926819", BIC: "NWBKGB2L"},
		{IBAN: "DE89370400440532013000", BIC: "COBADEFFXXX"},
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(10 * 365 * 24 * time.Hour))))
	f := bankfile.File{Serial: 1 + r.IntN(2_000_000), MadeAt: at, Day: flex.DayAt(at), Payer: payers[r.IntN(len(payers))]}
	f.Payer.Name = name()
	f.Message = fmt.Sprintf("FLEXD-%04d%02d%02d-%06d-%08x", f.Day.Year, f.Day.Month, f.Day.Dom, f.Serial%1_000_000, r.Uint32())
	for i := range 1 + r.IntN(20) {
		f.Payments = append(f.Payments, bankfile.Payment{
			ID: fmt.Sprint(i), Attempt: 1, Name: flex.Personal(name()), SortCode: flex.Personal(digits(6)), Number: flex.Personal(digits(8)),
			Amount: flex.Pence(1 + r.Int64N(pow10(1+r.IntN(12)))), Reference: fmt.Sprintf("FLEXD%010d-%d", i, 1+r.IntN(9)),
		})
	}
	return f
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// 1,000 random files are valid by the published schema.
func TestPain001_PublishedSchema(t *testing.T) {
	r := rand.New(rand.NewPCG(2026, 9))
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("%04d.xml", i)] = write(t, randomFile(r), bankfile.Pain001)
	}
	for name, fault := range schemaFaults(t, files) {
		t.Errorf("%s\n%.2000s", fault, files[name])
	}
}

// The published schema refuses what is planted, and so does the validator of its part: each
// proves the other.
func TestPain001_PublishedSchemaFinds(t *testing.T) {
	good := write(t, aFile(3), bankfile.Pain001)
	files := map[string]string{"good.xml": good}
	for name, change := range map[string][2]string{
		"namespace": {"pain.001.001.09", "pain.001.001.03"}, "missing": {"<PmtMtd>TRF</PmtMtd>", ""}, "twice": {"<PmtMtd>TRF</PmtMtd>", "<PmtMtd>TRF</PmtMtd><PmtMtd>TRF</PmtMtd>"},
		"order":   {"<PmtMtd>TRF</PmtMtd>\n\t\t\t<NbOfTxs>3</NbOfTxs>", "<NbOfTxs>3</NbOfTxs><PmtMtd>TRF</PmtMtd>"},
		"unknown": {"<PmtMtd>", "<X/><PmtMtd>"}, "both": {"<Dt>2026-11-24</Dt>", "<Dt>2026-11-24</Dt><DtTm>2026-11-24T00:00:00</DtTm>"}, "neither": {"<Dt>2026-11-24</Dt>", ""},
		"long": {"<MsgId>", "<MsgId>123456"}, "empty": {"<MmbId>200000</MmbId>", "<MmbId></MmbId>"}, "code": {"TRF", "TFR"}, "amount": {`Ccy="GBP">`, `Ccy="GBP">1,`},
		"currency": {` Ccy="GBP"`, ""}, "text": {"<PmtMtd>", "x<PmtMtd>"}, "day": {"<Dt>2026-11-24</Dt>", "<Dt>2026-11-31</Dt>"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing is planted", name)
		}
		files[name+".xml"] = bad
	}

	faults := schemaFaults(t, files)
	if faults["good.xml"] != "" || len(faults) != len(files)-1 {
		t.Errorf("%d of %d planted faults found; of the good file: %s", len(faults), len(files)-1, faults["good.xml"])
	}
}
