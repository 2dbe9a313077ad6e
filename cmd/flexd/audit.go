package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// auditCommand is `flexd audit`.
type auditCommand struct {
	List       auditList       `cmd:"" help:"List people's actions, the newest first."`
	Export     auditExport     `cmd:"" help:"Print the links of the audit log's chain, a line of JSON each: sequence, hash, and the line that was hashed."`
	Checkpoint auditCheckpoint `cmd:"" help:"Sign the newest link with the newest key of the key file. Keep the output elsewhere: with it you can show later that no earlier entry was changed."`
	Verify     auditVerify     `cmd:"" help:"Recompute the chain, and compare it with a checkpoint."`
}

type auditList struct {
	store
	Who   string   `help:"Only of this person." placeholder:"NAME"`
	Act   string   `help:"Only this action, for example: log in." placeholder:"ACT"`
	Org   string   `help:"Only actions on this organisation's records." placeholder:"NAME"`
	Site  string   `help:"Only actions on this site, and reads of its data." placeholder:"SITE"`
	Limit actLimit `help:"How many at most; flexd audit export prints them all." default:"100"`
	JSON  bool     `help:"Print as JSON." name:"json"`
}

type actRow struct {
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	Source  string    `json:"source"`
	Act     string    `json:"act"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail"`
	Outcome string    `json:"outcome"` // empty for what was cut short
}

// Run lists acts.
func (a *auditList) Run(ctx context.Context, c console) error {
	site, err := access.AuditSite(a.Site)
	if err != nil {
		return err
	}

	h, err := a.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	org, err := orgIfNamed(ctx, h, a.Org)
	if err != nil {
		return err
	}

	rows := []actRow{}
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		acts, err := all.Acts(ctx, records.ActFilter{
			Who:     a.Who,
			Act:     a.Act,
			Subject: site,
			Org:     org,
			Limit:   int(a.Limit),
		})

		for _, x := range acts {
			rows = append(rows, actRow{
				x.At,
				x.Who,
				x.Source,
				x.Act,
				x.Subject,
				x.Detail,
				x.Outcome,
			})
		}

		return err
	})
	if err != nil {
		return err
	}

	return list(c, a.JSON, rows, "AT\tWHO\tFROM\tACT\tON\tOUTCOME\tDETAIL", func(r actRow) []any {
		return []any{
			r.At,
			r.Who,
			r.Source,
			r.Act,
			r.Subject,
			r.Outcome,
			plainLine(r.Detail),
		}
	})
}

type auditExport struct {
	store
	always
	After int64 `help:"Only links of the chain after this number." placeholder:"N"`
}

// exportPage is the number of links that are read at once.
const exportPage = 1000

type linkRow struct {
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"`
	Text     string `json:"text"`
}

// Run prints the links, and at the end, to where errors go, how many there were.
func (a *auditExport) Run(ctx context.Context, c console) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	out := json.NewEncoder(c.out)
	count, after := 0, a.After

	for {
		var links []records.Link
		err := h.DB.ReadAll(ctx, func(all *records.All) error {
			var err error
			links, err = all.AuditLinks(ctx, after, exportPage)
			return err
		})
		if err != nil {
			return err
		}

		for _, l := range links {
			err := out.Encode(linkRow{l.Sequence, l.Hash, l.Text})
			if err != nil {
				return err
			}

			count++
			after = l.Sequence
		}

		if len(links) < exportPage {
			fmt.Fprintf(c.err, "%d links\n", count)
			return nil
		}
	}
}

type auditCheckpoint struct {
	store
	always
}

// Run prints the checkpoint.
func (a *auditCheckpoint) Run(ctx context.Context, c console) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	checkpoint, err := h.Access.Checkpoint(ctx)
	if err != nil {
		return err
	}

	return c.json(checkpoint)
}

type auditVerify struct {
	store
	form
	Checkpoint string `help:"File that flexd audit checkpoint printed." type:"existingfile" placeholder:"FILE"`
	PublicKey  string `help:"Public key that must have signed it, in base64; without it, the one that the checkpoint names." placeholder:"KEY"`
}

// Run checks the chain of the audit log.
func (a *auditVerify) Run(ctx context.Context, c console) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	firstBroken, err := h.DB.VerifyAudit(ctx)
	if err != nil {
		return err
	}

	if len(firstBroken) > 0 {
		err := a.print(
			c,
			fields{"findings": firstBroken},
			"%s\n",
			strings.Join(firstBroken, "\n"),
		)
		if err != nil {
			return err
		}

		return fmt.Errorf("the audit log was changed: %d findings", len(firstBroken))
	}

	if a.Checkpoint != "" {
		if err := a.check(ctx, h.Access); err != nil {
			return err
		}
	}

	var head records.Head

	var unlinked int64

	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		head, err = all.AuditHead(ctx)
		if err != nil {
			return err
		}

		unlinked, err = all.UnlinkedActs(ctx)
		return err
	})
	if err != nil {
		return err
	}

	message := fmt.Sprintf(
		"%d links hold; the newest hash is %s\n",
		head.Sequence,
		head.Hash,
	)

	if unlinked > 0 {
		message += fmt.Sprintf(
			"%d acts are in no link: they were written before the chain began, or by a flexd of before\n",
			unlinked,
		)
	}

	return a.print(
		c,
		fields{
			"findings": []string{},
			"links":    head.Sequence,
			"hash":     head.Hash,
			"unlinked": unlinked,
		},
		"%s",
		message,
	)
}

// check compares the chain with the checkpoint's file.
func (a *auditVerify) check(ctx context.Context, d *access.Service) error {
	text, err := readUnmarked(a.Checkpoint)
	if err != nil {
		return err
	}

	var checkpoint access.Checkpoint
	if err := json.Unmarshal(text, &checkpoint); err != nil {
		return flex.Fail(
			flex.Malformed,
			"%s is no checkpoint: %v",
			a.Checkpoint,
			err,
		)
	}

	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(a.PublicKey))
	if err != nil {
		return flex.Fail(flex.Malformed, "--public-key is not base64: %v", err)
	}

	return d.CheckCheckpoint(ctx, checkpoint, key)
}
