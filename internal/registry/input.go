package registry

import (
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"flexd/internal/directory"
	"flexd/internal/flex"
)

// SiteInput is a site as a client sends it. An empty field was not sent.
type SiteInput struct {
	MPAN      string
	Postcode  string
	Address   string // number or name of the house, street, town
	Email     string
	ConsentAt time.Time // to the use of the boundary meter's readings
	Supply    flex.SupplyChange
}

// AssetInput is an asset as a client sends it. An empty or nil field was not sent.
type AssetInput struct {
	AssetProperties
	ExternalID   string
	Type         flex.AssetType
	Model        string
	InstalledOn  string // YYYY-MM-DD
	SerialNumber string
}

// AssetProperties are the properties of an asset as a client sends them. A nil field was not
// sent.
type AssetProperties struct {
	Power     *flex.Watts
	Capacity  *flex.WattHours
	Phases    *int    // 1 or 3; 0 removes them
	Phase     *string // L1, L2 or L3; empty removes it
	Firmware  *string // empty removes it
	Heat      *flex.Heat
	Discharge DischargeChange
}

// apply sets the properties of an asset that were sent.
func (p *AssetProperties) apply(a *flex.Asset) error {
	a.Power = inputOr(p.Power, a.Power)
	a.Capacity = inputOr(p.Capacity, a.Capacity)
	setIfSent(&a.Firmware, p.Firmware)

	if err := setHeat(a, p.Heat); err != nil {
		return err
	}
	if err := setPhases(a, p.Phases, p.Phase); err != nil {
		return err
	}

	return setDischarge(a, &p.Discharge)
}

// inputOr returns the value that was sent, or else the stored one.
func inputOr[T any](input, stored *T) *T {
	if input != nil {
		return input
	}
	return stored
}

// change reports whether one of the properties that were sent differs from the asset's.
func (p *AssetProperties) change(a *flex.Asset) bool {
	return slices.Contains([]bool{
		changes(a.Power, p.Power),
		changes(a.Capacity, p.Capacity),
		changes(&a.Phases, p.Phases),
		changes(new(flex.PhaseNames[a.Phase]), p.Phase),
		changes(&a.Firmware, p.Firmware),
		changes(&a.Heat, p.Heat),
		p.Discharge.changes(&a.Discharge),
	}, true)
}

// mostOfCharger is beyond the power of any charger: a greater value was probably sent in
// watts.
const mostOfCharger flex.Watts = 1_000_000

// doubts returns warnings about values that are accepted and look wrong.
func (in AssetInput) doubts() []string {
	if !in.Type.Charges() || in.Power == nil || *in.Power <= mostOfCharger {
		return nil
	}

	return []string{fmt.Sprintf(
		"power_kw: %g kW is more than a charger has: is it in watts?",
		in.Power.KW(),
	)}
}

// emailMax is the longest address that mail can be sent to (RFC 5321).
const emailMax = 254

// mpanDigits is the number of digits of an MPAN.
const mpanDigits = 13

// normal is a SiteInput in the forms in which sites are stored and searched for.
type normal struct {
	SiteInput
	// of the address; empty if the address does not identify its premises
	key string
}

// normalise reads the site's MPAN, postcode and address. Faults are at loc, followed by the
// field; a wrong email is a Malformed failure of its own. Without a metering point, where that
// is allowed, the postcode may be one of any country.
func (t SiteInput) normalise(withoutMPAN bool, loc ...string) (normal, []flex.Fault) {
	var n normal
	n.SiteInput = t
	var reason string
	n.MPAN, reason = normalMPAN(t.MPAN)

	var faults []flex.Fault
	if n.MPAN == "" && t.MPAN != "" {
		faults = append(faults, faultAt("value_error.mpan", reason, loc, "mpan"))
	}

	abroad := t.MPAN == "" && withoutMPAN
	if abroad && t.Postcode != "" {
		n.Postcode, faults = postcodeAbroad(t.Postcode, loc)
	} else if t.Postcode != "" {
		p, err := directory.FindPostcode(t.Postcode)
		if err != nil {
			faults = append(
				faults,
				faultAt("value_error.postcode", err.Error(), loc, "postcode"),
			)
		}

		n.Postcode = string(p)
	}

	faults = append(faults, supplyFaults(t.Supply, loc)...)

	n.Address = strings.Join(strings.Fields(t.Address), " ")
	if len(n.Address) > directory.MaxAddress {
		faults = append(
			faults,
			faultAt(
				"value_error.any_str.max_length",
				fmt.Sprintf(
					"ensure this value has at most %d characters",
					directory.MaxAddress,
				),
				loc,
				"street_address",
			),
		)

		return n, faults
	}

	n.key = addressKey(n.Address, n.Postcode)

	return n, faults
}

// fuseFaults returns what is wrong with a main fuse that was sent.
func fuseFaults(c flex.SupplyChange, loc []string) []flex.Fault {
	if c.Fuse == nil {
		return nil
	}

	if c.Import != nil {
		return []flex.Fault{faultAt(
			"value_error",
			"the import capacity is given as a main fuse and in kW: give one of them",
			loc,
			"main_fuse",
		)}
	}

	if err := c.Fuse.Check(); err != nil {
		return []flex.Fault{
			faultAt("value_error", err.Error(), loc, "main_fuse"),
		}
	}

	return nil
}

// supplyFaults returns what is wrong with a supply that was sent.
func supplyFaults(c flex.SupplyChange, loc []string) []flex.Fault {
	var faults []flex.Fault
	check := func(field string, value *flex.Watts, least flex.Watts) {
		if value == nil || *value >= least && *value <= flex.SupplyMax {
			return
		}
		reason := fmt.Sprintf(
			"ensure this value is from %g to %g kW: 23 is a fuse of 100 A on one phase, 69 on three",
			least.KW(),
			flex.SupplyMax.KW(),
		)

		faults = append(
			faults,
			faultAt("value_error.number.range", reason, loc, field),
		)
	}

	check("import_capacity_kw", c.Import, flex.SupplyImportMin)
	check("export_capacity_kw", c.Export, 0)

	return append(faults, fuseFaults(c, loc)...)
}

// normalMPAN returns the thirteen digits of an MPAN, or nothing and the reason. A wrong check
// digit is accepted, because the interface's own examples have one: the client's value is
// stored, /validation/mpan says whether it is right, and the directory knows which numbers
// exist.
func normalMPAN(text string) (mpan, reason string) {
	m, err := directory.ParseMPAN(text)
	if err == nil {
		return m.Core(), ""
	}

	if e, ok := errors.AsType[*flex.Error](err); ok {
		reason = strings.Join(e.Details, "; ")
	}

	digits := strings.NewReplacer(" ", "", "-", "").Replace(text)
	if len(digits) == mpanDigits && strings.Trim(digits, "0123456789") == "" {
		return digits, ""
	}

	return "", reason
}

// addressKey returns the key by which addresses are compared, the same for different
// spellings, or nothing if the address does not identify its premises.
func addressKey(address, postcode string) string {
	if address == "" || postcode == "" {
		return ""
	}

	if _, err := directory.FindPostcode(postcode); err != nil {
		return keyAbroad(address, postcode)
	}

	a, err := directory.ParseAddress(address + ", " + postcode)
	if err != nil {
		return ""
	}

	return a.Key()
}

// isEmail reports whether the text is an address to which mail can be sent.
func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && len(text) <= emailMax &&
		strings.Contains(text[strings.LastIndex(text, "@"):], ".")
}

const emailForm = "the email is not an address that mail can be sent to: write it like resident@example.com"

func faultAt(keyword, msg string, loc []string, field string) flex.Fault {
	return flex.Fault{
		Loc:  append(append([]string{"body"}, loc...), field),
		Msg:  msg,
		Type: keyword,
	}
}

func invalid(faults []flex.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &flex.Error{Kind: flex.Invalid, Faults: faults}
}
