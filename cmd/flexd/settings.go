package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/reward"
	records "flexd/internal/store"
)

// orgSet is `flexd org set`.
type orgSet struct {
	store
	Name   string   `arg:"" help:"Name of the organisation."`
	Values []string `arg:"" optional:"" name:"setting=value" help:"What to set, such as user_share=0.5; user_share=default restores the default. Without any argument all settings are printed."`
	From   string   `help:"London day from which terms hold, such as 2026-04-01; tomorrow if not given, or all days while nothing is settled." placeholder:"DAY"`
	JSON   bool     `help:"Print as JSON." name:"json"`
}

// setting is a number or a word that an organisation may set and that applies at once. A
// setting that applies from a given day is a reward.TermSetting.
type setting struct {
	name     string
	standard string
	help     string
	show     func(*flex.OrgSettings) string
	set      func(*flex.OrgSettings, string) error
	// nil: the zero value is the default
	clear func(*flex.OrgSettings)
}

// integerSetting and truth make settings of one field each, between bounds.
func integerSetting[N ~int | ~int64](
	field func(*flex.OrgSettings) *N,
	most N,
) (func(*flex.OrgSettings) string, func(*flex.OrgSettings, string) error) {
	return func(s *flex.OrgSettings) string {
			return strconv.FormatInt(int64(*field(s)), 10)
		},
		func(s *flex.OrgSettings, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if inside := n >= 0 && n <= int64(most); err != nil || !inside {
				return fmt.Errorf("a whole number from 0 to %d", most)
			}

			*field(s) = N(n)
			return nil
		}
}

// settings lists the settings of an organisation that are not dated, with the defaults that
// are used.
func settings() []setting {
	type set = flex.OrgSettings
	var all []setting
	add := func(name, standard, help string) func(func(*set) string, func(*set, string) error) {
		return func(show func(*set) string, set func(*set, string) error) {
			all = append(all, setting{
				name:     name,
				standard: standard,
				help:     help,
				show:     show,
				set:      set,
			})
		}
	}

	show, need := integerSetting(
		func(s *set) *flex.WattHours { return &s.DefaultNeed },
		1_000_000,
	)

	add("default_need_wh", "4 h at the asset's power", "what a car needs whose user never said")(
		show,
		func(s *set, text string) error {
			if err := need(s, text); err != nil || s.DefaultNeed == 0 {
				return errors.New("a whole number from 1 to 1000000")
			}

			return nil
		},
	)

	all[len(all)-1].clear = func(s *set) { s.DefaultNeed = 0 }
	add("close_books_after_days", "0 (never)", "a month of the books closes by itself so many days after its end")(
		integerSetting(func(s *set) *int { return &s.Books.CloseAfterDays }, 366))

	all = append(
		all,
		integerOr(
			setting{
				name:     "max_half_hourly_export_wh",
				standard: "none (not checked)",
				help:     "a metering point with a greater largest half-hourly export is not eligible (P511, whose text and figure could not be read for this release: ask your settlement agent); flexd bsc pairs tells the exports",
			},
			func(s *set) *flex.Optional[flex.WattHours] {
				return &s.ExportLimit
			},
			100_000_000,
		),
	)

	return slices.Concat(
		append(all, openADRSetting(), withoutMPANSetting()),
		rateSettings(),
		bookSettings(),
		payoutSettings(),
		pageSettings(),
	)
}

func withoutMPANSetting() setting {
	s := setting{
		name:     "sites_without_mpan",
		standard: "false",
		help:     "whether sites may be registered with an empty mpan: they are planned and pushed, and nothing of them is settled",
	}

	s.show, s.set = truthOf(
		func(o *flex.OrgSettings) *bool { return &o.WithoutMPAN },
		true,
	)

	s.clear = func(o *flex.OrgSettings) { o.WithoutMPAN = false }

	return s
}

// defaultWord sets the default again, as an empty value does.
const defaultWord = "default"

// changes are the settings of a command line.
type changes struct {
	terms map[string]string // by name; empty: the default
	plain []func(*flex.OrgSettings) error
}

// Run sets the settings, and prints those in force.
func (o *orgSet) Run(ctx context.Context, c console) error {
	todo, err := o.read()
	if err != nil {
		return err
	}

	from, err := o.from(todo)
	if err != nil {
		return err
	}

	// Set first, print later: a reader that closes the output does not stop the change.
	orgStore := ofOrg{store: o.store, Org: o.Name}
	if len(o.Values) > 0 {
		err := orgStore.actOn(
			ctx,
			"set settings",
			strings.Join(o.Values, " "),
			func(h *app.App, org flex.Org) error {
				return todo.store(ctx, h, org, from)
			},
		)

		if err != nil {
			return err
		}
	}

	h, org, err := orgStore.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	return c.settings(ctx, h, org, o.JSON)
}

// store changes and writes the organisation's settings, and its terms from a day on.
func (t changes) store(
	ctx context.Context,
	h *app.App,
	org flex.Org,
	from flex.Day,
) error {
	if err := t.change(&org.Settings); err != nil {
		return err
	}

	// Terms come first: they can still be refused, the other settings no longer.
	if len(t.terms) > 0 {
		_, err := h.Reward.SetTerms(ctx, org.ID, t.terms, from, commandLine)
		if err != nil {
			return err
		}
	}

	if len(t.plain) == 0 {
		return nil
	}

	return h.DB.Write(ctx, org.ID, func(tx *records.Tx) error {
		return t.storePlain(ctx, tx)
	})
}

// change changes settings that are not dated.
func (t changes) change(s *flex.OrgSettings) error {
	for _, change := range t.plain {
		if err := change(s); err != nil {
			return err
		}
	}

	return nil
}

// storePlain changes the settings that are stored when the organisation is locked, so that it
// does not undo a change of another setting at the same time.
func (t changes) storePlain(ctx context.Context, tx *records.Tx) error {
	if err := tx.LockOrg(ctx); err != nil {
		return err
	}

	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	before := org.Settings.Rates
	if err := t.change(&org.Settings); err != nil {
		return err
	}

	err = tx.SetSettings(ctx, org.Settings)
	if err == nil && org.Settings.Rates != before {
		err = tx.MarkAllDischarging(ctx)
	}

	return err
}

// read reads the new settings. Terms are validated together where they are set.
func (o *orgSet) read() (changes, error) {
	terms, plain := reward.TermSettings(), settings()

	var todo changes
	todo.terms = map[string]string{}

	for _, pair := range o.Values {
		name, value, hasValue := strings.Cut(pair, "=")
		isTerm := slices.ContainsFunc(terms, func(s reward.TermSetting) bool {
			return s.Name == name
		})

		i := slices.IndexFunc(plain, func(s setting) bool {
			return s.name == name
		})

		if i < 0 && !isTerm {
			return todo, flex.Fail(
				flex.Invalid,
				"there is no setting %q; flexd org set %q prints them all",
				name,
				o.Name,
			)
		}

		if !hasValue {
			return todo, flex.Fail(
				flex.Invalid,
				"%s: give its value as %s=VALUE; %s=%s sets the default again",
				name,
				name,
				name,
				defaultWord,
			)
		}

		if value == defaultWord {
			value = ""
		}

		if isTerm {
			todo.terms[name] = value
			continue
		}

		todo.plain = append(todo.plain, func(s *flex.OrgSettings) error {
			return plain[i].change(s, value)
		})
	}

	return todo, nil
}

// from returns the first day of new terms; zero if none is given.
func (o *orgSet) from(todo changes) (flex.Day, error) {
	if o.From == "" {
		return flex.Day{}, nil
	}
	if len(todo.terms) == 0 {
		return flex.Day{}, flex.Fail(
			flex.Invalid,
			"--from is for what is dated: %s",
			strings.Join(termNames(), ", "),
		)
	}

	day, err := flex.ParseDay(o.From)
	if err != nil {
		err = flex.Fail(
			flex.Invalid,
			"--from: %q is not a day such as 2026-04-01",
			o.From,
		)
	}

	return day, err
}

func termNames() []string {
	var names []string
	for _, s := range reward.TermSettings() {
		names = append(names, s.Name)
	}
	return names
}

// change sets a value, or the default if it is empty.
func (k setting) change(s *flex.OrgSettings, value string) error {
	if value == "" && k.clear != nil {
		k.clear(s)
		return nil
	}

	if value == "" {
		blank := flex.OrgSettings{}
		value = k.show(&blank)
	}

	if err := k.set(s, value); err != nil {
		return flex.Fail(flex.Invalid, "%s: %q is not %v", k.name, value, err)
	}

	return nil
}

// settingRow is the value of a setting today and, if it is dated, its later values.
type settingRow struct {
	Name    string       `json:"name"`
	Value   *string      `json:"value"` // null: the default
	Default string       `json:"default"`
	Help    string       `json:"help"`
	Changes []termChange `json:"changes,omitempty"`
}

// termChange is a later value of a dated setting; null: the default.
type termChange struct {
	From  string  `json:"from_day"`
	Value *string `json:"value"`
}

// settings prints the values in force today, and future ones.
func (c console) settings(
	ctx context.Context,
	h *app.App,
	org flex.Org,
	asJSON bool,
) error {
	terms, err := h.Reward.Terms(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := []settingRow{}
	for _, s := range reward.TermSettings() {
		rows = append(rows, datedRow(s, &terms))
	}
	for _, k := range settings() {
		rows = append(rows, undatedRow(k, &org.Settings))
	}

	if asJSON {
		return c.json(rows)
	}

	return c.settingTable(rows)
}

// datedRow is a setting with a first day, and its future values.
func datedRow(s reward.TermSetting, terms *reward.Terms) settingRow {
	row := settingRow{
		Name:    s.Name,
		Value:   optionalText(terms.Values[s.Name]),
		Default: s.Default,
		Help:    s.Help,
	}

	for _, change := range terms.Changes {
		if change.Name == s.Name &&
			change.From.Start().After(terms.Today.Start()) {
			row.Changes = append(row.Changes, termChange{
				From:  change.From.String(),
				Value: optionalText(change.Value),
			})
		}
	}

	return row
}

// undatedRow returns the row of a setting that applies at once. It counts as the default if
// its text is that of a new organisation.
func undatedRow(k setting, settings *flex.OrgSettings) settingRow {
	row := settingRow{
		Name:    k.name,
		Default: k.standard,
		Help:    k.help,
	}

	value := k.show(settings)
	if value != k.show(&flex.OrgSettings{}) {
		row.Value = &value
	}

	return row
}

// settingTable prints a line for each setting.
func (c console) settingTable(rows []settingRow) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		value := r.text(r.Value)
		for _, change := range r.Changes {
			value += fmt.Sprintf(
				"; %s from %s",
				r.text(change.Value),
				change.From,
			)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Name, value, r.Help)
	}

	return t.Flush()
}

// optionalText is a text, or nil where there is none.
func optionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (r settingRow) text(value *string) string {
	if value == nil {
		return r.Default + " (default)"
	}
	return *value
}

// orgTerms is `flexd org terms`.
type orgTerms struct {
	store
	Name string `arg:"" help:"Name of the organisation."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// termRow is a value of a term from a day on.
type termRow struct {
	Name   string     `json:"name"`
	Value  *string    `json:"value"`    // null: the default
	From   *string    `json:"from_day"` // null: from the beginning
	Holds  bool       `json:"holds_today"`
	SetAt  *time.Time `json:"set_at"` // null: before terms were dated
	SetBy  string     `json:"set_by,omitempty"`
	Listed string     `json:"default"`
}

// Run lists each value that a term had, has or is to have.
func (o *orgTerms) Run(ctx context.Context, c console) error {
	h, org, err := ofOrg{store: o.store, Org: o.Name}.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	terms, err := h.Reward.Terms(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := []termRow{}
	for _, s := range reward.TermSettings() {
		rows = append(rows, termRows(s, terms)...)
	}

	if o.JSON {
		return c.json(rows)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TERM\tFROM\tVALUE\tTODAY\tSET\tBY")

	for _, r := range rows {
		fmt.Fprintln(t, r)
	}

	return t.Flush()
}

// String is the row as columns.
func (r termRow) String() string {
	from, value := "the beginning", r.Listed+" (default)"
	if r.From != nil {
		from = *r.From
	}

	if r.Value != nil {
		value = *r.Value
	}

	var inForce, set string
	if r.Holds {
		inForce = "holds"
	}

	if r.SetAt != nil {
		set = r.SetAt.Format(time.RFC3339)
	}

	return strings.Join(
		[]string{r.Name, from, value, inForce, set, r.SetBy},
		"\t",
	)
}

// termRows returns the values of a term by day. The default is included from the beginning if
// nothing else was set then.
func termRows(s reward.TermSetting, terms reward.Terms) []termRow {
	var rows []termRow
	for _, v := range terms.History(s.Name) {
		row := termRow{
			Name:   s.Name,
			Holds:  v.InForce,
			SetBy:  v.SetBy,
			Listed: s.Default,
		}

		if v.Value != "" {
			row.Value = &v.Value
		}

		if v.From != (flex.Day{}) {
			row.From = new(v.From.String())
		}

		if !v.SetAt.IsZero() {
			row.SetAt = &v.SetAt
		}

		rows = append(rows, row)
	}

	return rows
}
