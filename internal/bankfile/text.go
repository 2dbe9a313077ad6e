package bankfile

import (
	"strings"
	"unicode"
)

// latin says how characters beyond A to Z are written with them.
var latin = func() map[rune]string {
	table := map[rune]string{}
	for _, row := range [][2]string{
		{"A", "ÀÁÂÃÅĀĂĄǍǺẠẢẤẦẨẪẬẮẰẲẴẶ"}, {"a", "àáâãåāăąǎǻạảấầẩẫậắằẳẵặ"}, {"Ae", "ÄÆǼ"}, {"ae", "äæǽ"},
		{"C", "ÇĆĈĊČ"}, {"c", "çćĉċč"}, {"D", "ĎĐÐ"}, {"d", "ďđð"},
		{"E", "ÈÉÊËĒĔĖĘĚẸẺẼẾỀỂỄỆ"}, {"e", "èéêëēĕėęěẹẻẽếềểễệ"}, {"G", "ĜĞĠĢ"}, {"g", "ĝğġģ"}, {"H", "ĤĦ"}, {"h", "ĥħ"},
		{"I", "ÌÍÎÏĨĪĬĮİǏỈỊ"}, {"i", "ìíîïĩīĭįıǐỉị"}, {"J", "Ĵ"}, {"j", "ĵ"}, {"K", "Ķ"}, {"k", "ķ"},
		{"L", "ĹĻĽĿŁ"}, {"l", "ĺļľŀł"}, {"N", "ÑŃŅŇ"}, {"n", "ñńņň"},
		{"O", "ÒÓÔÕŌŎŐƠǑỌỎỐỒỔỖỘỚỜỞỠỢ"}, {"o", "òóôõōŏőơǒọỏốồổỗộớờởỡợ"}, {"Oe", "ÖØŒǾ"}, {"oe", "öøœǿ"},
		{"R", "ŔŖŘ"}, {"r", "ŕŗř"}, {"S", "ŚŜŞŠȘ"}, {"s", "śŝşšș"}, {"ss", "ß"}, {"SS", "ẞ"}, {"T", "ŢŤŦȚ"}, {"t", "ţťŧț"}, {"Th", "Þ"}, {"th", "þ"},
		{"U", "ÙÚÛŨŪŬŮŰŲƯǓỤỦỨỪỬỮỰ"}, {"u", "ùúûũūŭůűųưǔụủứừửữự"}, {"Ue", "Ü"}, {"ue", "ü"},
		{"W", "ŴẀẂẄ"}, {"w", "ŵẁẃẅ"}, {"Y", "ÝŶŸỲỴỶỸ"}, {"y", "ýÿŷỳỵỷỹ"}, {"Z", "ŹŻŽ"}, {"z", "źżž"},
		{"'", "\u2018\u2019\u02bc`\u00b4"}, {"-", "\u2010\u2011\u2012\u2013\u2014\u2212"},
	} {
		for _, letter := range row[1] {
			table[letter] = row[0]
		}
	}
	return table
}()

// alphabet is the characters that a format takes.
type alphabet struct {
	others string // beside letters and digits
	upper  bool   // capital letters alone
	and    string // in the place of &
}

var (
	// bacsAlphabet is that of Bacs Standard 18.
	bacsAlphabet = alphabet{
		others: ".&/-",
		upper:  true,
		and:    "&",
	}
	// isoAlphabet is what every bank takes in ISO 20022 messages.
	isoAlphabet = alphabet{others: "/-?:().,'+", and: "and"}
)

// Text returns the text in at most as many of the format's characters as most says. Letters with marks
// are written without them; what has no like becomes a blank, or nothing. It returns nothing
// if no letter and no digit is left.
func (a alphabet) text(s string, most int) string {
	var out strings.Builder
	for _, r := range s {
		out.WriteString(a.write(r))
	}

	text := strings.Join(strings.Fields(out.String()), " ")
	// no field begins with a slash, nor with what begins a formula
	text = strings.TrimLeft(text, a.others+" ")

	if a.upper {
		text = strings.ToUpper(text)
	}

	// Two slashes would begin another field.
	for strings.Contains(text, "//") {
		text = strings.ReplaceAll(text, "//", "/")
	}

	text = strings.TrimRight(text[:min(len(text), most)], " /")
	if !strings.ContainsFunc(text, isPlain) {
		return ""
	}

	return text
}

// write returns what is written for one character.
func (a alphabet) write(r rune) string {
	if isPlain(r) {
		return string(r)
	}

	if r == '&' {
		return a.and
	}

	if plain, ok := latin[r]; ok {
		// An apostrophe that the format has not is left out: O'Neill is ONEILL, not O NEILL.
		if plain == "'" && !strings.Contains(a.others, "'") {
			return ""
		}

		return plain
	}

	if r == '\'' && !strings.Contains(a.others, "'") ||
		unicode.Is(unicode.Mn, r) {
		return ""
	}
	if r < unicode.MaxASCII && strings.ContainsRune(a.others, r) {
		return string(r)
	}

	return " "
}

// isPlain reports whether the character is a letter from A to Z or a digit.
func isPlain(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
}

// Payable reports whether a name can be written in every format.
func Payable(name string) bool {
	return bacsAlphabet.text(name, bacsName) != "" &&
		isoAlphabet.text(name, isoName) != ""
}
