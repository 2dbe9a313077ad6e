package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of payment files, results and modulus tables say what is wrong, and leave no
// empty file.
func TestPayouts_CommandLine(t *testing.T) {
	dir := t.TempDir()
	run := commandLineOf(t, "sqlite:"+filepath.Join(dir, "flexd.db"))
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	weights := write("valacdos.txt", "089000 089999 MOD10    0    0    0    0    0    0    7    1    3    7    1    3    7    1\n")
	substitutes := write("scsubtab.txt", "938173 938017\n")
	wrong := write("wrong.txt", "089000 089999 MOD97    0    0    0    0    0    0    7    1    3    7    1    3    7    1\n")
	returned := write("returned.csv", "reference,amount,return_code\nFLEXD0000000000-1,1.00,B\n")
	document := write("other.xml", "<Document><X/></Document>")
	own := write("own.csv", "withdrawal_id,status\n")
	file := filepath.Join(dir, "payments.txt")

	for _, step := range []struct {
		line string
		code int
		want string
	}{
		{"org add Acme --username me", exitDone, ""},
		{"payouts export " + file + " --format bacs18", exitFailed, "set payer_sun and payer_sort_code and payer_account: flexd org set NAME payer_sun=…"},
		{"payouts export " + file + " --format xls", exitUsage, "csv, bacs18 or pain.001"},
		{"payouts export " + file + " --day tomorrow", exitUsage, "is not a day such as"},
		{"payouts export " + file + " --message X", exitUsage, "--message is for --again"},
		{"org set Acme payer_sun=123456 payer_sort_code=12-34-56 payer_account=12345678 payment_file_format=bacs18", exitDone, "payment_file_format bacs18"},
		{"payouts export " + file, exitFailed, "there is nothing to pay"},
		{"payouts export " + file + " --format csv", exitDone, "0 payments, £0.00 in all"},
		{"payouts files", exitDone, "NUMBER MESSAGE FORMAT"},
		{"payouts files --json", exitDone, "[]"},
		{"payouts import " + returned, exitDone, "returned credits: 1 result, 0 new, 0 known, 0 under way, 1 unknown, 0 refused"},
		{"payouts import --dry-run " + returned, exitDone, "FLEXD0000000000-1 unknown returned B account closed £1.00"},
		{"payouts import --json --dry-run " + returned, exitDone, `"reason": "B account closed", "amount_pence": 100`},
		{"payouts import " + document, exitUsage, "neither a pain.002 (CstmrPmtStsRpt) nor a camt.053"},
		{"payouts import --dry-run " + own, exitDone, "dry run, nothing is changed: 0 results"},
		{"doctor", exitFailed, "no table: accounts are not checked"},
		{"payouts modulus check 08-99-99 66374959", exitDone, "unchecked"},
		{"payouts modulus import " + substitutes, exitUsage, "the table of weights (valacdos.txt) is missing"},
		{"payouts modulus import " + wrong, exitUsage, "line 1: MOD97 is neither"},
		{"payouts modulus import " + weights + " " + substitutes, exitDone, "substitutions of "},
		{"payouts modulus check 08-99-99 66374959", exitDone, "failed"},
		{"payouts modulus check 08-99-99 66374958 --json", exitDone, `"verdict": "passed"`},
		{"payouts modulus check 08-99 66374958", exitUsage, "six digits"},
	} {
		os.Remove(file)
		code, said := run(step.line)
		if code != step.code || !strings.Contains(strings.Join(strings.Fields(said), " "), step.want) {
			t.Errorf(
				"flexd %s: %d, want %d with %q:\n%s",
				step.line,
				code,
				step.code,
				step.want,
				said,
			)
		}

		if _, err := os.Stat(file); err == nil && code != exitDone {
			t.Errorf("flexd %s left a file", step.line)
		}
	}
}
