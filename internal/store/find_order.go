package store

import (
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// AssetOrder is a column that a list of assets is sorted by, from the least on; "-" before it turns
// it round. The zero value is the newest first.
type AssetOrder string

// orderColumn is what a list is sorted by in SQL. No value of it is null.
type orderColumn struct {
	by     string
	number bool
}

// assetOrders are the columns that AssetOrder names.
var assetOrders = map[string]orderColumn{
	"asset":        {by: "lower(a.external_id)"},
	"type":         {by: "a.type"},
	"power":        {by: "COALESCE(a.power_w, 0)", number: true},
	"model":        {by: "lower(COALESCE(a.model, ''))"},
	"firmware":     {by: "lower(a.firmware)"},
	"plugged_in":   {by: "COALESCE(p.plugged_in_at, 0)", number: true},
	"ready_by":     {by: "COALESCE(p.ready_by, 0)", number: true},
	"organisation": {by: "lower(o.name)"},
}

// AssetOrders are the columns that a list of assets can be sorted by.
var AssetOrders = []string{
	"asset",
	"type",
	"power",
	"model",
	"firmware",
	"plugged_in",
	"ready_by",
	"organisation",
}

// page adds the condition that an asset comes after the one before the page, whose key is given. It
// returns the key's and the order's SQL. What has the same key goes by the id.
func (o AssetOrder) page(
	w *where,
	before flex.AssetID,
	key string,
) (keySQL, order string, err error) {
	if o == "" {
		if !before.IsZero() {
			w.text.WriteString(" AND a.id < " + w.param(before.Bytes()))
		}
		return "''", " ORDER BY a.id DESC", nil
	}

	name, down := strings.CutPrefix(string(o), "-")
	column, ok := assetOrders[name]
	if !ok {
		return "", "", fmt.Errorf("assets cannot be sorted by %q", name)
	}

	direction, after := "", ">"
	if down {
		direction, after = " DESC", "<"
	}

	if !before.IsZero() {
		value, err := column.value(key)
		if err != nil {
			return "", "", err
		}

		fmt.Fprintf(
			&w.text,
			" AND (%s, a.id) %s (%s, %s)",
			column.by,
			after,
			w.param(value),
			w.param(before.Bytes()),
		)
	}

	order = fmt.Sprintf(" ORDER BY %s%s, a.id%s", column.by, direction, direction)

	return "CAST(" + column.by + " AS TEXT)", order, nil
}

// value is a key as it is compared.
func (c orderColumn) value(key string) (any, error) {
	if !c.number {
		return key, nil
	}

	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return nil, flex.Fail(
			flex.Invalid,
			"before is the one that a page's next has, and goes with its sort; %q is no number",
			key,
		)
	}

	return n, nil
}

// only adds the condition that an asset is one of those that are listed.
func (f Find) only(w *where, d dialect) {
	if f.Only == nil {
		return
	}

	w.text.WriteString(" AND a.id IN (" +
		fmt.Sprintf(d.idSet, w.param(idList(f.Only))) + ")")
}
