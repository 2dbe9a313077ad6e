package bankfile_test

import (
	"strings"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
)

// The lines of the published tables that the published test cases need.
const (
	someWeights = `
070116 070116 MOD11    0    0    7    6    5    8    9    4    5    6    7    8    9   -1  12
070116 070116 MOD10    0    3    2    4    5    8    9    4    5    6    7    8    9   -1  13
074456 074456 MOD11    0    0    7    6    5    8    9    4    5    6    7    8    9   -1  12
074456 074456 MOD10    0    3    2    4    5    8    9    4    5    6    7    8    9   -1  13
086090 086090 MOD10    0    0    3    7    1    3    7    1    3    7    1    3    7    1   8
089000 089999 MOD10    0    0    0    0    0    0    7    1    3    7    1    3    7    1
102400 107999 MOD11    0    0    0    0    0    0    8    7    6    5    4    3    2    1
110000 119280 DBLAL    0    0    2    1    2    1    2    1    2    1    2    1    2    1   1
134012 134020 MOD11    0    0    0    7    5    9    8    4    6    3    5    2    0    0   4
180002 180002 MOD11    0    0    0    0    0    0    8    7    6    5    4    3    2    1  14
200901 201159 MOD11    0    0    0    0    0    0    0    7    6    5    4    3    2    1   6
200901 201159 DBLAL    2    1    2    1    2    1    2    1    2    1    2    1    2    1   6
202700 203239 MOD11    0    0    0    0    0    0    0    7    6    5    4    3    2    1   6
202700 203239 DBLAL    2    1    2    1    2    1    2    1    2    1    2    1    2    1   6
309001 309633 MOD11    0    0    3    2    9    8    5    7    6    5    4    3    2    1   2
309001 309633 MOD11    0    0    3    2    9    8    1    7    6    5    4    3    2    1   9
771900 772799 MOD11    0    0    1    2    5    3    6    4    8    7   10    9    3    1   7
820000 826097 MOD11    0    0    0    0    0    0    0    0    7    3    4    9    2    1
820000 826097 DBLAL    2    1    2    1    2    1    2    1    2    1    2    1    2    1   3
827000 827999 MOD11    0    0    0    0    0    0    0    0    7    3    4    9    2    1
827000 827999 DBLAL    2    1    2    1    2    1    2    1    2    1    2    1    2    1   3
871000 872999 MOD11    0    0    1    2    5    3    6    4    8    7   10    9    3    1  10
871000 872999 MOD11    0    0    5   10    9    8    0    7    6    5    4    3    2    1  11
938000 938696 MOD11    7    6    5    4    3    2    7    6    5    4    3    2    0    0   5
938000 938696 DBLAL    2    1    2    1    2    1    2    1    2    1    2    1    2    0   5
`
	someSubstitutes = "938173 938017\r\n938600 938611\r\n"
)

func someModulus(t *testing.T) bankfile.Modulus {
	t.Helper()
	m, err := bankfile.ReadModulus(someWeights, someSubstitutes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The specification's published test cases.
func TestModulus_PublishedCases(t *testing.T) {
	m := someModulus(t)
	for _, tt := range []struct {
		name, sortCode, number string
		want                   bankfile.ModulusVerdict
	}{
		{"modulus 10", "089999", "66374958", bankfile.ModulusPassed},
		{"modulus 11", "107999", "88837491", bankfile.ModulusPassed},
		{"modulus 11 and double alternate", "202959", "63748472", bankfile.ModulusPassed},
		{"exceptions 10 and 11, the first passes", "871427", "46238510", bankfile.ModulusPassed},
		{"exceptions 10 and 11, the second passes", "872427", "46238510", bankfile.ModulusPassed},
		{"exception 10, ab is 09 and g is 9", "871427", "09123496", bankfile.ModulusPassed},
		{"exception 10, ab is 99 and g is 9", "871427", "99123496", bankfile.ModulusPassed},
		{"exception 3, c is 6", "820000", "73688637", bankfile.ModulusPassed},
		{"exception 3, c is 9", "827999", "73988638", bankfile.ModulusPassed},
		{"exception 3, c is neither", "827101", "28748352", bankfile.ModulusPassed},
		{"exception 4", "134020", "63849203", bankfile.ModulusPassed},
		{"exception 1", "118765", "64371389", bankfile.ModulusPassed},
		{"exception 6, a foreign currency", "200915", "41011166", bankfile.ModulusPassed},
		{"exception 5", "938611", "07806039", bankfile.ModulusPassed},
		{"exception 5 with substitution", "938600", "42368003", bankfile.ModulusPassed},
		{"exception 5, both remainders 0", "938063", "55065200", bankfile.ModulusPassed},
		{"exception 7", "772798", "99345694", bankfile.ModulusPassed},
		{"exception 8", "086090", "06774744", bankfile.ModulusPassed},
		{"exceptions 2 and 9, the first passes", "309070", "02355688", bankfile.ModulusPassed},
		{"exceptions 2 and 9, the second passes", "309070", "12345668", bankfile.ModulusPassed},
		{"exceptions 2 and 9, a is not 0 and g not 9", "309070", "12345677", bankfile.ModulusPassed},
		{"exceptions 2 and 9, a is not 0 and g is 9", "309070", "99345694", bankfile.ModulusPassed},
		{"exceptions 12 and 13, modulus 11 passes", "074456", "12345112", bankfile.ModulusPassed},
		{"exceptions 12 and 13, modulus 11 passes too", "070116", "34012583", bankfile.ModulusPassed},
		{"exceptions 12 and 13, modulus 10 passes", "074456", "11104102", bankfile.ModulusPassed},
		{"exception 14, the second look passes", "180002", "00000190", bankfile.ModulusPassed},
		{"exception 5, the second check digit is wrong", "938063", "15764273", bankfile.ModulusFailed},
		{"exception 5, the first check digit is wrong", "938063", "15764264", bankfile.ModulusFailed},
		{"exception 5, the remainder is 1", "938063", "15763217", bankfile.ModulusFailed},
		{"exception 1", "118765", "64371388", bankfile.ModulusFailed},
		{"modulus 11 passes, double alternate fails", "203099", "66831036", bankfile.ModulusFailed},
		{"modulus 11 fails, double alternate passes", "203099", "58716970", bankfile.ModulusFailed},
		{"modulus 10", "089999", "66374959", bankfile.ModulusFailed},
		{"modulus 11", "107999", "88837493", bankfile.ModulusFailed},
		{"a sort code of no line", "000000", "12345678", bankfile.ModulusUnchecked},
	} {
		t.Run(tt.name+", "+string(tt.want), func(t *testing.T) {
			if got := m.Check(tt.sortCode, tt.number); got != tt.want {
				t.Errorf("%s %s: %s, want %s", tt.sortCode, tt.number, got, tt.want)
			}
		})
	}
}

// Without the table of substitutions what needs it is not checked.
func TestModulus_WithoutSubstitutes(t *testing.T) {
	m, err := bankfile.ReadModulus(someWeights, "")
	if err != nil || m.Check("938600", "42368003") != bankfile.ModulusUnchecked || m.Check("089999", "66374959") != bankfile.ModulusFailed {
		t.Errorf("%v", err)
	}
}

func TestReadModulus_Faults(t *testing.T) {
	line := "089000 089999 MOD10 0 0 0 0 0 0 7 1 3 7 1 3 7 1"
	for name, tt := range map[string]struct{ weights, substitutes, want string }{
		"empty":                   {"", "", "the table is empty"},
		"a weight too few":        {strings.TrimSuffix(line, " 1"), "", "line 1: 16 fields"},
		"no range":                {strings.Replace(line, "089000", "099000", 1), "", "no range of sort codes"},
		"another method":          {strings.Replace(line, "MOD10", "MOD97", 1), "", "neither MOD10 nor MOD11 nor DBLAL"},
		"a weight of letters":     {strings.Replace(line, "7", "x", 1), "", `"x" is no number`},
		"an unknown exception":    {"\n" + line + " 15", "", "line 2: the exception \"15\" is not known"},
		"the last exception":      {line + " 14", "", ""},
		"a substitution of three": {line, "938173 938017 1", "two sort codes"},
		"too many lines":          {strings.Repeat(line+"\n", 20_001), "", "at most 20000 lines"},
		"as many as may be":       {strings.Repeat(line+"\n", 20_000), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bankfile.ReadModulus(tt.weights, tt.substitutes)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || flex.KindOf(err) == flex.Internal) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if !bankfile.IsWeights(someWeights) || bankfile.IsWeights(someSubstitutes) {
		t.Error("the tables are taken for each other")
	}
}
