package store

import (
	"context"
	"fmt"
	"strings"

	"flexd/internal/flex"
)

// alwaysLacking is what no organisation's file has, and what there is to do.
var alwaysLacking = []string{
	"endpoints: nothing is pushed until flexd endpoint set",
	"credentials: no client and no OpenADR server can sign in until flexd credential add, flexd openadr client add",
	"operators: those of all organisations alone see it; others and their roles are given by flexd operator add",
}

// lacking is what an organisation refers to and this flexd does not have.
var lacking = []struct {
	text string
	sql  string
}{
	{
		"price sources: %s (flexd prices import)",
		`SELECT DISTINCT r.source FROM price_role r WHERE r.org_id = $1 AND r.source <> ''
			AND NOT EXISTS (SELECT 1 FROM price_source s WHERE s.name = r.source) ORDER BY r.source`,
	},
	{
		"asset models: %s (flexd models import)",
		`SELECT DISTINCT a.model FROM asset a WHERE a.org_id = $1 AND a.model <> ''
			AND NOT EXISTS (SELECT 1 FROM model m WHERE m.key = ` + modelKeySQL + `) ORDER BY a.model`,
	},
	{
		"metering points that are in no list here: %s (flexd meters import)",
		`SELECT r.mpan FROM registration r WHERE r.org_id = $1 AND r.to_at IS NULL
			AND NOT EXISTS (SELECT 1 FROM meter m WHERE m.mpan = r.mpan) ORDER BY r.mpan`,
	},
}

// lacksMax is how many are named of what is lacking of a kind.
const lacksMax = 5

// lacks says what an organisation that was taken in will not find here.
func (all *All) lacks(
	ctx context.Context,
	org flex.OrgID,
) ([]string, error) {
	read := func(s scanner) (string, error) {
		var name string
		err := s.Scan(opened(all.conn, personMPAN, &name)) // the others are not sealed, and stay as they are
		return name, err
	}

	var lines []string
	for _, l := range lacking {
		names, err := rows(ctx, all.conn, read, l.sql, org.Bytes())
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			continue
		}

		text := strings.Join(names[:min(len(names), lacksMax)], ", ")
		if more := len(names) - lacksMax; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, fmt.Sprintf(l.text, text))
	}

	return append(lines, alwaysLacking...), nil
}
