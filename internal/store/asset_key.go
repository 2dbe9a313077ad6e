package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode"

	"github.com/pressly/goose/v3"
)

// The keys of an asset's model and of its firmware in SQL. A key is the text without blanks
// around it in lower case, as Go makes it. SQLite, and PostgreSQL with the locale C, turn
// ASCII alone into lower case, so that a key of other names is stored.
const (
	modelKeySQL    = `COALESCE(a.model_key, lower(a.model))`
	firmwareKeySQL = `COALESCE(a.firmware_key, lower(a.firmware))`
)

// storedKey returns the normalised key of a model or a firmware that is stored with it: nil if
// SQL's own lower case gives the same.
func storedKey(text string) any {
	key := modelKey(text)
	beyond := func(r rune) bool { return r > unicode.MaxASCII }
	if len(key) == len(text) && !strings.ContainsFunc(text, beyond) {
		return nil
	}

	return key
}

// assetKeys is the migration that stores the keys of the assets that are there.
func assetKeys() *goose.Migration {
	m := goose.NewGoMigration(593, &goose.GoFunc{RunTx: storeAssetKeys}, nil)
	m.Source = "00593_asset_keys.go" // a name for the list of what is to be applied

	return m
}

func storeAssetKeys(ctx context.Context, tx *sql.Tx) error {
	for _, column := range []string{"model", "firmware"} {
		texts, err := distinctTexts(ctx, tx, column)
		if err != nil {
			return err
		}

		for _, text := range texts {
			key := storedKey(text)
			if key == nil {
				continue
			}

			_, err := tx.ExecContext(
				ctx,
				fmt.Sprintf(`UPDATE asset SET %s_key = $1 WHERE %[1]s = $2`, column),
				key,
				text,
			)
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// distinctTexts are the texts of a column of assets, each once.
func distinctTexts(
	ctx context.Context,
	tx *sql.Tx,
	column string,
) ([]string, error) {
	found, err := tx.QueryContext(ctx, `SELECT DISTINCT `+column+` FROM asset`)
	if err != nil {
		return nil, err
	}

	defer found.Close()

	var texts []string
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}

	return texts, found.Err()
}
