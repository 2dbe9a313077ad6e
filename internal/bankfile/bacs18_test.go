package bankfile_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"flexd/internal/bankfile"
)

// field is a part of a line of Standard 18: its first and last position, as the published
// tables count them, and what it must be.
type field struct {
	name        string
	first, last int
	form        string
}

// standard18 is the tables of the format, written down from its description, apart from the
// code that writes it. Compared with two banks' published guides, position by position: Bank
// of Ireland's BACS File Specification (VOL1, HDR1), HSBC's Message Implementation Guide BACS
// Standard 18 of August 2012 (all). Where they differ (HDR1, 15), what both take is asked for.
var standard18 = map[string][]field{
	"VOL1": {
		{"label", 1, 4, `VOL1`}, {"serial", 5, 10, `[A-Z0-9]{6}`}, {"accessibility", 11, 11, `[ 0]`}, {"reserved", 12, 31, ` *`}, {"reserved", 32, 37, ` *`},
		{"owner", 38, 41, ` *`}, {"SUN", 42, 47, `\d{6}`}, {"owner", 48, 51, ` *`}, {"reserved", 52, 79, ` *`}, {"standard level", 80, 80, `1`},
	},
	"HDR1": header("HDR1"), "EOF1": header("EOF1"), "HDR2": blocks("HDR2"), "EOF2": blocks("EOF2"),
	"UHL1": {
		{"label", 1, 4, `UHL1`}, {"processing day", 5, 10, ` \d{5}`}, {"receiver", 11, 20, `999999    `}, {"currency", 21, 22, `00`}, {"country", 23, 28, `000000`},
		{"work code", 29, 37, `1 DAILY  `}, {"file number", 38, 40, `\d{3}`}, {"reserved", 41, 47, ` *`}, {"audit print", 48, 54, ` *`}, {"for the user", 55, 80, ` *`},
	},
	"UTL1": {
		{"label", 1, 4, `UTL1`}, {"debits", 5, 17, `\d{13}`}, {"credits", 18, 30, `\d{13}`}, {"debit items", 31, 37, `\d{7}`}, {"credit items", 38, 44, `\d{7}`},
		{"reserved", 45, 80, ` *`},
	},
	"record": {
		{"sort code", 1, 6, `\d{6}`}, {"account", 7, 14, `\d{8}`}, {"type", 15, 15, `0`}, {"code", 16, 17, `17|99`}, {"payer's sort code", 18, 23, `\d{6}`},
		{"payer's account", 24, 31, `\d{8}`}, {"free", 32, 35, ` *`}, {"amount", 36, 46, `\d{11}`}, {"payer's name", 47, 64, name18}, {"reference", 65, 82, name18},
		{"name", 83, 100, name18},
	},
}

// name18 is a text that begins with a letter or digit.
const name18 = `[A-Z0-9][A-Z0-9 .&/-]*`

func header(label string) []field {
	return []field{
		{"label", 1, 4, label}, {"A", 5, 5, `A`}, {"SUN", 6, 11, `\d{6}`}, {"S", 12, 12, `S`}, {"blank", 13, 14, `  `}, {"blank or 1", 15, 15, ` `}, {"SUN again", 16, 21, `\d{6}`},
		{"serial", 22, 27, `[A-Z0-9]{6}`}, {"section", 28, 31, `0001`}, {"sequence", 32, 35, `0001`}, {"generation", 36, 39, ` *`}, {"version", 40, 41, ` *`},
		{"made", 42, 47, ` \d{5}`}, {"expires", 48, 53, ` \d{5}`}, {"accessibility", 54, 54, `[ 0]`}, {"blocks", 55, 60, `000000`}, {"system", 61, 73, ` *`}, {"reserved", 74, 80, ` *`},
	}
}

func blocks(label string) []field {
	return []field{
		{"label", 1, 4, label}, {"format", 5, 5, `F`}, {"block length", 6, 10, `02000`}, {"record length", 11, 15, `00100`}, {"reserved", 16, 50, ` *`},
		{"offset", 51, 52, `00`}, {"reserved", 53, 80, ` *`},
	}
}

var patterns = map[string]*regexp.Regexp{}

// pattern returns the whole text's pattern.
func pattern(form string) *regexp.Regexp {
	if patterns[form] == nil {
		patterns[form] = regexp.MustCompile(`^(?:` + form + `)$`)
	}
	return patterns[form]
}

// read18 reads a line by its table.
func read18(table, line string) (map[string]string, error) {
	values := map[string]string{}
	end := 0
	for _, f := range standard18[table] {
		if f.first != end+1 || f.last > len(line) {
			return nil, fmt.Errorf("%s: the line has %d characters, %s is at %d to %d after %d", table, len(line), f.name, f.first, f.last, end)
		}
		value := line[f.first-1 : f.last]
		if !pattern(f.form).MatchString(value) {
			return nil, fmt.Errorf("%s: %s is %q, not %s", table, f.name, value, f.form)
		}
		values[f.name], end = value, f.last
	}

	if end != len(line) {
		return nil, fmt.Errorf("%s: the line has %d characters, not %d", table, len(line), end)
	}
	return values, nil
}

// read18File reads a whole file, and returns its payments, if the file is right.
func read18File(text string) (payments []map[string]string, uhl map[string]string, err error) {
	lines := strings.Split(text, "\r\n")
	if len(lines) < 10 || lines[len(lines)-1] != "" {
		return nil, nil, fmt.Errorf("%d lines, or the last has no end", len(lines))
	}
	lines = lines[:len(lines)-1]
	order := append([]string{"VOL1", "HDR1", "HDR2", "UHL1"}, make([]string, len(lines)-7)...)
	order = append(order, "EOF1", "EOF2", "UTL1")
	labels := map[string]map[string]string{}
	var debits, credits, contras int

	for i, line := range lines {
		table := order[i]
		if table == "" {
			table = "record"
		}

		values, err := read18(table, line)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if table != "record" {
			labels[table] = values
			continue
		}

		amount, _ := strconv.Atoi(values["amount"])
		if values["code"] == "99" {
			credits += amount
			payments = append(payments, values)
			continue
		}
		if values["sort code"] != values["payer's sort code"] || values["account"] != values["payer's account"] || strings.TrimSpace(values["reference"]) != "CONTRA" {
			return nil, nil, fmt.Errorf("line %d: the contra is not of the payer: %v", i+1, values)
		}
		debits, contras = debits+amount, contras+1
	}

	utl := labels["UTL1"]
	if want := fmt.Sprintf("%013d %013d %07d %07d", debits, credits, contras, len(payments)); utl["debits"]+" "+utl["credits"]+" "+utl["debit items"]+" "+utl["credit items"] != want {
		return nil, nil, fmt.Errorf("UTL1 is %v, the records come to %s", utl, want)
	}
	if debits != credits || contras != 1 {
		return nil, nil, fmt.Errorf("debits of %d in %d contras, credits of %d", debits, contras, credits)
	}

	for _, name := range []string{"HDR1", "EOF1"} {
		h := labels[name]
		if h["serial"] != labels["VOL1"]["serial"] || h["SUN"] != labels["VOL1"]["SUN"] || h["SUN again"] != h["SUN"] {
			return nil, nil, fmt.Errorf("%s is of another file or user: %v", name, h)
		}
	}
	return payments, labels["UHL1"], nil
}

// A reader written from the format's tables reads back every payment, and the sums.
func TestBacs18(t *testing.T) {
	for _, n := range []int{1, 6, 1000} {
		f := aFile(n)
		payments, uhl, err := read18File(write(t, f, bankfile.Bacs18))
		if err != nil {
			t.Fatalf("%d payments: %v", n, err)
		}
		if len(payments) != n || uhl["processing day"] != " 26328" {
			t.Errorf("%d payments, for%s", len(payments), uhl["processing day"])
		}

		names := []string{"ANN ONEILL", "HYPERLINK HTTP /EV", "LUKASZ MUELLER-OES", "J & K SMITH", "1 1 X", "ANGSTROEM & COSIC"}
		for i, p := range payments {
			want := fmt.Sprintf("%s %s %011d %s", f.Payments[i].SortCode.Reveal(), f.Payments[i].Number.Reveal(), f.Payments[i].Amount, f.Payments[i].Reference)
			got := strings.Join([]string{p["sort code"], p["account"], p["amount"], strings.TrimSpace(p["reference"])}, " ")
			if got != want {
				t.Errorf("payment %d: %s, want %s", i, got, want)
			}

			if name := strings.TrimSpace(p["name"]); i < len(names) && name != names[i] {
				t.Errorf("payment %d: name %q, want %q", i, name, names[i])
			}
			if p["payer's name"] != "GROEN FLEX & SONS " {
				t.Errorf("payer %q", p["payer's name"])
			}
		}
	}
}

// The reader finds what is planted.
func TestBacs18_ReaderFinds(t *testing.T) {
	good := write(t, aFile(3), bankfile.Bacs18)
	for name, change := range map[string]func(string) string{
		"a label too long":         func(s string) string { return strings.Replace(s, "VOL1", "VOL1 ", 1) },
		"a record too short":       func(s string) string { return strings.Replace(s, " \r\nEOF1", "\r\nEOF1", 1) },
		"another credit total":     func(s string) string { return strings.Replace(s, "0000001", "0000002", 1) },
		"a payment taken out":      func(s string) string { i := strings.Index(s, "123456000000010"); return s[:i] + s[i+102:] },
		"a small letter":           func(s string) string { return strings.Replace(s, "ANN", "Ann", 1) },
		"a contra of another":      func(s string) string { return strings.Replace(s, "\r\n20000055779911017", "\r\n20000055779912017", 1) },
		"an amount changed":        func(s string) string { i := strings.Index(s, "CONTRA"); return s[:i-20] + "9" + s[i-19:] },
		"a processing day of text": func(s string) string { return strings.Replace(s, "UHL1 26328", "UHL1 26X28", 1) },
		"the end cut off":          func(s string) string { return s[:len(s)-2] },
	} {
		bad := change(good)

		if bad == good {
			t.Fatalf("%s: nothing is planted", name)
		}

		if _, _, err := read18File(bad); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// A file whole, byte for byte: what stands where is seen here without any table.
func TestBacs18_Whole(t *testing.T) {
	f := aFile(0)
	f.Payer.Name = "ACME LTD"
	f.Payments = []bankfile.Payment{{
		ID: "w", Attempt: 1, Name: "Ada Widget", SortCode: "204512", Number: "12345678", Amount: 2500_00, Reference: "FLEXD0000000001-1",
	}}

	want := "VOL1000007                               123456                                1\r\n" +
		"HDR1A123456S   12345600000700010001       26326 26333 000000                    \r\n" +
		"HDR2F0200000100                                   00                            \r\n" +
		"UHL1 26328999999    000000001 DAILY  001                                        \r\n" +
		"2045121234567809920000055779911    00000250000ACME LTD          FLEXD0000000001-1 ADA WIDGET        \r\n" +
		"2000005577991101720000055779911    00000250000ACME LTD          CONTRA            ACME LTD          \r\n" +
		"EOF1A123456S   12345600000700010001       26326 26333 000000                    \r\n" +
		"EOF2F0200000100                                   00                            \r\n" +
		"UTL10000000250000000000025000000000010000001                                    \r\n"
	if got := write(t, f, bankfile.Bacs18); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
