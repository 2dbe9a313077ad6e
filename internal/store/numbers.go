package store

import (
	"fmt"
	"strconv"
	"strings"
)

// writeNumbers and readNumbers keep whole numbers as a text of words.
func writeNumbers[Number ~int64](list []Number) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.FormatInt(int64(n), 10)
	}

	return strings.Join(words, " ")
}

func readNumbers[Number ~int64](what, text string) ([]Number, error) {
	var list []Number
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("stored %s: %w", what, err)
		}
		list = append(list, Number(n))
	}

	return list, nil
}
