package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

// AssetLine is an asset in a list that goes across organisations.
type AssetLine struct {
	flex.Asset
	Org       flex.OrgID
	OrgName   string
	Postcode  flex.Personal
	PluggedIn time.Time // zero while nothing is plugged in
	ReadyBy   time.Time // of the open session, zero until it was planned
	Excluded  time.Time // from control since then, zero if it is not
	Key       string    // that the list is sorted by, see Find.Sort
}

// SiteLine is a site in a list that goes across organisations.
type SiteLine struct {
	flex.Site
	Org     flex.OrgID
	OrgName string
	Assets  int
}

// Find selects assets or sites across organisations; an empty field selects all. Limit must be set.
type Find struct {
	// an id, an MPAN, a UPRN, an e-mail address, a postcode, or part of an external id or a serial
	// number; of sites an address too, whole and as it was given where it is sealed
	Text    string
	Org     flex.OrgID
	Type    flex.AssetType
	Plugged bool
	Site    flex.SiteID
	Before  flex.AssetID // the last asset of the page before; zero for the first page
	Limit   int
	// the last site of the page before, in a list of sites
	BeforeSite flex.SiteID

	// The following are for assets only.
	Model    string // in upper or lower case
	Firmware string // likewise
	GSPGroup string
	Group    string // a constraint group, including the groups inside it
	State    AssetState
	Only     []flex.AssetID // only these; nil for all
	Sort     AssetOrder
	Key      string // sort key of the asset Before

	inside map[flex.OrgID][]string // by organisation: the groups inside Group
}

// AssetState is a state of assets that an operator can search for.
type AssetState string

// The states; the zero value selects all.
const (
	AssetPluggedIn AssetState = "plugged_in"
	AssetRefused   AssetState = "refused"   // its schedule was refused for good
	AssetWaiting   AssetState = "waiting"   // its push has not been accepted
	AssetUnplanned AssetState = "unplanned" // plugged in, without a schedule
	AssetExcluded  AssetState = "excluded"  // from control, by an operator
)

// AssetStates are all of them.
var AssetStates = []AssetState{
	AssetPluggedIn,
	AssetRefused,
	AssetWaiting,
	AssetUnplanned,
	AssetExcluded,
}

const (
	digitsOfMPAN = 13
	digitsOfUPRN = 12
	lengthOfUUID = 36
)

// text adds the condition that the text names asset a or its site s; without assets, site s.
func (f Find) text(c conn, w *where, assets bool) {
	text := strings.TrimSpace(f.Text)
	plain := strings.ReplaceAll(text, " ", "")

	switch {
	case text == "":
	case len(plain) == digitsOfMPAN && strings.Trim(plain, "0123456789") == "":
		w.text.WriteString(" AND s.mpan = " + w.param(c.hide(personMPAN, plain)))

	case len(text) == lengthOfUUID && isUUID(text):
		f.ids(c, w, text, assets)

	case strings.Contains(text, "@"):
		w.text.WriteString(" AND " + c.matchesText("s.email", personEmail, text, w.param))

	default:
		w.text.WriteString(" AND (" + c.matchesText(
			"s.external_user_id",
			personUser,
			text,
			w.param,
		) +
			" OR " + c.matchesText("s.postcode", personPostcode, plain, w.param))

		uprn := strings.TrimLeft(plain, "0")
		if uprn != "" && len(plain) <= digitsOfUPRN &&
			strings.Trim(plain, "0123456789") == "" {
			w.text.WriteString(" OR s.mpan IN (SELECT mpan FROM meter WHERE " +
				c.matchesText("uprn", personUPRN, uprn, w.param) + ")")
		}

		if assets {
			like := "LOWER(" + w.param("%"+likeText(text)+"%") + ")"
			w.text.WriteString(" OR LOWER(a.external_id) LIKE " + like +
				` ESCAPE '\' OR LOWER(a.serial_number) LIKE ` + like +
				` ESCAPE '\'`)
		} else {
			w.text.WriteString(" OR " + c.ofAddress(text, w))
		}

		w.text.WriteString(")")
	}
}

// ofAddress returns the condition that a site's address contains the text; where addresses are
// sealed, that it equals the text.
func (c conn) ofAddress(text string, w *where) string {
	if c.db.persons == nil {
		return "LOWER(s.address) LIKE LOWER(" + w.param("%"+likeText(text)+"%") + `) ESCAPE '\'`
	}

	return c.matchesText("s.address", personAddress, text, w.param)
}

// ids adds the condition that a site, or one of its assets, sessions or schedules, has the id.
func (f Find) ids(
	c conn,
	w *where,
	text string,
	assets bool,
) {
	id, _ := flex.ParseID[struct{}](text)
	p := w.param(id.Bytes())

	if !assets {
		w.text.WriteString(" AND (s.id = " + p +
			" OR " + c.matchesText("s.external_user_id", personUser, text, w.param) + ")")
		return
	}

	w.text.WriteString(" AND (a.id = " + p + " OR a.site_id = " + p + " OR LOWER(a.external_id) = LOWER(" + w.param(text) + ")" +
		" OR a.id IN (SELECT asset_id FROM session WHERE id = " + p + ")" +
		" OR a.id IN (SELECT asset_id FROM schedule WHERE event_id = " + p + "))")
}

func isUUID(text string) bool {
	_, err := flex.ParseID[struct{}](text)
	return err == nil
}

// likeText returns the text with the wildcards of LIKE escaped. Its lower case is left to SQL,
// as for the column: not every database has one beyond ASCII, and so a text in its stored
// spelling is always found.
func likeText(text string) string {
	return strings.NewReplacer(
		`\`,
		`\\`,
		`%`,
		`\%`,
		`_`,
		`\_`,
	).Replace(text)
}

// onlyAtFirst is how many of the assets in Find.Only the first query for a page searches.
const onlyAtFirst = 256

// FindAssets returns assets across organisations in the order of Find.Sort. With many ids in
// Find.Only, and the newest first, it searches the newest of them, and more until the page is
// full: a query over all of them would take too long for a page.
func (all *All) FindAssets(
	ctx context.Context,
	f Find,
) ([]AssetLine, error) {
	if f.Sort != "" || len(f.Only) <= onlyAtFirst {
		return all.findAssets(ctx, f)
	}

	ids := slices.SortedFunc(
		slices.Values(f.Only),
		func(a, b flex.AssetID) int { return bytes.Compare(b[:], a[:]) },
	)

	if !f.Before.IsZero() {
		ids = slices.DeleteFunc(ids, func(id flex.AssetID) bool {
			return bytes.Compare(id[:], f.Before[:]) >= 0
		})
	}

	var found []AssetLine
	for size := onlyAtFirst; len(ids) > 0 && f.Limit > 0; size *= 4 {
		part := f
		part.Only = ids[:min(size, len(ids))]
		ids = ids[len(part.Only):]

		more, err := all.findAssets(ctx, part)
		if err != nil {
			return nil, err
		}

		found = append(found, more...)
		f.Limit -= len(more)
	}

	return found, nil
}

func (all *All) findAssets(
	ctx context.Context,
	f Find,
) ([]AssetLine, error) {
	w := &where{}
	f.text(all.conn, w, true)
	w.within(ctx, "a.org_id")

	if err := f.nested(ctx, all.conn); err != nil {
		return nil, err
	}
	f.assets(w, all.Now())
	f.only(w, all.db.d)
	key, order, err := f.Sort.page(w, f.Before, f.Key)
	if err != nil {
		return nil, err
	}

	limit := w.param(f.Limit)
	scan := func(s scanner) (AssetLine, error) {
		var v AssetLine
		var err error
		v.Asset, err = scanAsset(extra{
			s,
			[]any{
				&v.Org,
				&v.OrgName,
				opened(all.conn, personPostcode, &v.Postcode),
				instant{&v.PluggedIn},
				instant{&v.ReadyBy},
				instant{&v.Excluded},
				&v.Key,
			},
		})

		return v, err
	}

	return rows(
		ctx,
		all.conn,
		scan,
		`SELECT `+columnsOf("a", assetColumns)+`,
			a.org_id, o.name, s.postcode, p.plugged_in_at, p.ready_by, a.excluded_at, `+key+`
		FROM `+foundAssets+` WHERE 1 = 1`+w.text.String()+order+` LIMIT `+limit,
		w.args...,
	)
}

// assetIDsPart is how many ids of a list are kept together.
const assetIDsPart = 5000

// AssetIDs returns the ids of all assets that FindAssets finds, whatever its limit, in the
// order that is asked for and in parts: 16 bytes for each.
func (all *All) AssetIDs(
	ctx context.Context,
	f Find,
) ([][]flex.AssetID, error) {
	w := &where{}
	f.text(all.conn, w, true)
	w.within(ctx, "a.org_id")

	if err := f.nested(ctx, all.conn); err != nil {
		return nil, err
	}
	f.assets(w, all.Now())
	f.only(w, all.db.d)
	_, order, err := f.Sort.page(w, f.Before, f.Key)
	if err != nil {
		return nil, err
	}

	var parts [][]flex.AssetID
	add := func(s scanner) error {
		last := len(parts) - 1
		if last < 0 || len(parts[last]) == assetIDsPart {
			parts = append(parts, make([]flex.AssetID, 0, assetIDsPart))
			last++
		}

		id, err := scalar[flex.AssetID](s)
		parts[last] = append(parts[last], id)

		return err
	}

	err = eachRow(
		ctx,
		all.conn,
		add,
		`SELECT a.id FROM `+foundAssets+` WHERE 1 = 1`+w.text.String()+order,
		w.args...,
	)

	return parts, err
}

// AssetsByID returns the assets of some ids, in the order of the ids. Those that there are no
// longer are left out.
func (all *All) AssetsByID(
	ctx context.Context,
	ids []flex.AssetID,
) ([]AssetLine, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	found, err := all.findAssets(ctx, Find{Only: ids, Limit: len(ids)})
	if err != nil {
		return nil, err
	}

	place := make(map[flex.AssetID]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}

	slices.SortFunc(found, func(a, b AssetLine) int {
		return cmp.Compare(place[a.ID], place[b.ID])
	})

	return found, nil
}

// foundAssets are assets (a) with their organisations (o), sites (s) and open sessions (p).
const foundAssets = `asset a JOIN org o ON o.id = a.org_id JOIN site s ON s.id = a.site_id
	LEFT JOIN session p ON p.asset_id = a.id AND p.plugged_out_at IS NULL`

// CountAssets returns how many assets FindAssets finds on all pages.
func (all *All) CountAssets(
	ctx context.Context,
	f Find,
) (int, error) {
	w := &where{}
	f.text(all.conn, w, true)
	w.within(ctx, "a.org_id")
	if err := f.nested(ctx, all.conn); err != nil {
		return 0, err
	}
	f.assets(w, all.Now())
	f.only(w, all.db.d)

	var n int
	err := all.row(
		ctx,
		`SELECT count(*) FROM `+f.countedIn()+` WHERE 1 = 1`+w.text.String(),
		w.args...,
	).Scan(&n)

	return n, err
}

// countedIn is what the conditions of a count need: assets alone where they ask for nothing of the
// site and the session.
func (f Find) countedIn() string {
	ofSite := f.Text != "" || f.GSPGroup != ""
	ofSession := f.Plugged || f.State == AssetPluggedIn || f.State == AssetUnplanned
	if ofSite || ofSession {
		return foundAssets
	}

	return "asset a"
}

// nested reads which groups lie in the one that is looked for.
func (f *Find) nested(
	ctx context.Context,
	c conn,
) error {
	if f.Group == "" {
		return nil
	}

	trees, err := c.nestedGroups(ctx)
	f.inside = map[flex.OrgID][]string{}
	for org, tree := range trees {
		if f.Org.IsZero() || f.Org == org {
			f.inside[org] = tree.Inside(f.Group)[1:]
		}
	}

	return err
}

// group adds the condition that an asset lies in a constraint group, or in one that lies in it.
func (f *Find) group(w *where) {
	if f.Group == "" {
		return
	}

	names := "g.name = " + w.param(f.Group)
	for org, inside := range f.inside {
		for _, name := range inside {
			names += " OR g.org_id = " + w.param(org.Bytes()) + " AND g.name = " + w.param(name)
		}
	}

	w.text.WriteString(
		" AND EXISTS (SELECT 1 FROM cap_site g WHERE g.org_id = a.org_id AND g.site_id = a.site_id AND (" + names + "))",
	)
}

// assets adds the conditions on assets.
func (f Find) assets(w *where, now time.Time) {
	add := func(given bool, condition string, v any) {
		if given {
			w.text.WriteString(" AND " +
				strings.ReplaceAll(condition, "?", w.param(v)))
		}
	}

	add(!f.Org.IsZero(), "a.org_id = ?", f.Org.Bytes())
	add(!f.Site.IsZero(), "a.site_id = ?", f.Site.Bytes())
	add(f.Type != "", "a.type = ?", string(f.Type))
	add(f.Model != "", modelKeySQL+" = ?", modelKey(f.Model))
	add(f.Firmware != "", firmwareKeySQL+" = ?", modelKey(f.Firmware))
	add(
		f.GSPGroup != "",
		"EXISTS (SELECT 1 FROM meter m WHERE m.mpan = s.mpan AND m.gsp_group = ?)",
		f.GSPGroup,
	)

	f.group(w)

	switch f.State {
	case AssetRefused:
		w.text.WriteString(" AND a.id IN (SELECT o.asset_id " +
			strings.ReplaceAll(refusedWhere, "$1", w.param(micros(now))) + ")")
	case AssetWaiting:
		w.text.WriteString(" AND a.id IN (SELECT asset_id FROM outbox WHERE " +
			strings.ReplaceAll(waitingWhere, "$1", w.param(micros(now))) + ")")
	case AssetUnplanned:
		w.text.WriteString(" AND p.id IS NOT NULL AND p.event_id IS NULL")
	case AssetExcluded:
		w.text.WriteString(" AND a.excluded_at IS NOT NULL")
	case AssetPluggedIn:
		w.text.WriteString(" AND p.id IS NOT NULL")
	}

	if f.Plugged {
		w.text.WriteString(" AND p.id IS NOT NULL")
	}
}

// FindSites returns sites across organisations, newest first. Its filter is Text, Org and
// BeforeSite.
func (all *All) FindSites(
	ctx context.Context,
	f Find,
) ([]SiteLine, error) {
	w := &where{}
	f.text(all.conn, w, false)
	w.within(ctx, "s.org_id")

	if !f.Org.IsZero() {
		w.text.WriteString(" AND s.org_id = " + w.param(f.Org.Bytes()))
	}

	if !f.BeforeSite.IsZero() {
		w.text.WriteString(" AND s.id < " + w.param(f.BeforeSite.Bytes()))
	}

	limit := w.param(f.Limit)
	scan := func(s scanner) (SiteLine, error) {
		var v SiteLine
		var err error
		v.Site, err = all.scanSite(extra{s, []any{&v.Org, &v.OrgName, &v.Assets}})
		return v, err
	}

	return rows(
		ctx,
		all.conn,
		scan,
		`SELECT `+siteColumns+
			`, s.org_id, o.name, (SELECT count(*) FROM asset a WHERE a.site_id = s.id)
		FROM site s JOIN org o ON o.id = s.org_id WHERE 1 = 1`+w.text.String()+` ORDER BY s.id DESC LIMIT `+limit,
		w.args...,
	)
}

// ForAsset returns the records of an organisation, or of the asset's if it is zero. A NotFound
// failure says that there is none.
func (all *All) ForAsset(
	ctx context.Context,
	org flex.OrgID,
	id flex.AssetID,
) (*Tx, error) {
	if org.IsZero() {
		var err error
		org, err = all.AssetOrg(ctx, id)
		if err != nil {
			return nil, err
		}
	}

	return all.For(ctx, org)
}

// AssetOrg returns whose asset it is, or a NotFound failure.
func (all *All) AssetOrg(
	ctx context.Context,
	id flex.AssetID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no asset of that id",
		`SELECT org_id FROM asset WHERE id = $1`,
		id.Bytes(),
	)
}

// OwnedAsset is an asset with the organisation that it is of.
type OwnedAsset struct {
	Org   flex.OrgID
	Asset flex.AssetID
}

// AssetsByExternalID returns the assets of all organisations with the vendor's own id, at most
// one of each.
func (all *All) AssetsByExternalID(
	ctx context.Context,
	external string,
) ([]OwnedAsset, error) {
	return rows(
		ctx,
		all.conn,
		func(s scanner) (OwnedAsset, error) {
			var a OwnedAsset
			err := s.Scan(&a.Org, &a.Asset)
			return a, err
		},
		`SELECT o.id, a.id FROM org o JOIN asset a ON a.org_id = o.id AND a.external_id = $1 ORDER BY o.id`,
		external,
	)
}

// SiteOrg returns whose site it is, or a NotFound failure.
func (all *All) SiteOrg(
	ctx context.Context,
	id flex.SiteID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no site of that id",
		`SELECT org_id FROM site WHERE id = $1`,
		id.Bytes(),
	)
}

func orgOf(
	ctx context.Context,
	all *All,
	missing, query string,
	args ...any,
) (flex.OrgID, error) {
	org, err := one(
		ctx,
		all.conn,
		missing,
		scalar[flex.OrgID],
		query,
		args...,
	)

	if err == nil && !Reaches(ctx, org) {
		return flex.OrgID{}, flex.Fail(flex.NotFound, "%s", missing)
	}

	return org, err
}

// ProductOrg returns whose a product is.
func (all *All) ProductOrg(
	ctx context.Context,
	id flex.ProductID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no product of that id",
		`SELECT org_id FROM grid_product WHERE id = $1`,
		id.Bytes(),
	)
}

// InstructionOrg returns whose instruction it is, or a NotFound failure.
func (all *All) InstructionOrg(
	ctx context.Context,
	id flex.InstructionID,
) (flex.OrgID, error) {
	return orgOf(
		ctx,
		all,
		"there is no instruction of that id",
		`SELECT org_id FROM instruction WHERE id = $1`,
		id.Bytes(),
	)
}
