package bankfile

import (
	"errors"
	"regexp"
	"strings"
)

var (
	ibanForm = regexp.MustCompile(`^[A-Z]{2}[0-9]{2}[A-Z0-9]{10,30}$`)
	bicForm  = regexp.MustCompile(`^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$`)
)

// ReadIBAN reads an international account number, with blanks, and checks its check digits.
func ReadIBAN(text string) (string, error) {
	text = strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	if !ibanForm.MatchString(text) {
		return "", errors.New("an IBAN such as GB29 NWBK 6016 1331 9268 19")
	}
	rest := 0
	for _, c := range text[4:] + text[:4] {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
			continue
		}

		rest = (rest*10 + int(c-'0')) % 97
	}
	if rest != 1 {
		return "", errors.New("an IBAN: its check digits are wrong")
	}

	return text, nil
}

// ReadBIC reads the code of a bank.
func ReadBIC(text string) (string, error) {
	text = strings.ToUpper(strings.TrimSpace(text))
	if !bicForm.MatchString(text) {
		return "", errors.New("a BIC such as NWBKGB2L")
	}

	return text, nil
}
