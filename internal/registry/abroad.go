package registry

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// PostcodeMax is the longest postcode of a site without a metering point, in bytes.
const PostcodeMax = 16

// postcodeAbroad reads the postcode of a site without a metering point: a British one in its
// usual form, any other in capitals.
func postcodeAbroad(text string, loc []string) (string, []flex.Fault) {
	if p, err := directory.FindPostcode(text); err == nil {
		return string(p), nil
	}

	postcode := strings.ToUpper(strings.Join(strings.Fields(text), " "))
	if postcode == "" || len(postcode) > PostcodeMax || !readable(postcode) {
		return "", []flex.Fault{faultAt(
			"value_error.postcode",
			fmt.Sprintf(
				"%q is no postcode: write up to %d letters, digits, spaces and hyphens",
				text,
				PostcodeMax,
			),
			loc,
			"postcode",
		)}
	}

	return postcode, nil
}

// readable reports whether a postcode consists of letters, digits, spaces and hyphens.
func readable(postcode string) bool {
	return strings.IndexFunc(postcode, func(r rune) bool {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		return !letter && r != ' ' && r != '-'
	}) < 0
}

// keyAbroad returns the key by which an address of another country is compared: its words in
// small letters, without what is between them.
func keyAbroad(address, postcode string) string {
	words := strings.FieldsFunc(strings.ToLower(address), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if len(words) == 0 {
		return ""
	}

	return "abroad|" + strings.ToLower(postcode) + "|" + strings.Join(words, " ")
}

// withoutMPAN reports whether the organisation may have sites without a metering point. It may
// not if it is exempt from consents to the use of meters: such a site is excluded from
// settlement because it cannot have that consent.
func withoutMPAN(org flex.Org) bool {
	return org.Settings.WithoutMPAN && !org.MeterConsentExempt
}

// mayLackMPAN is withoutMPAN for a request; it reads the organisation only if the MPAN is
// missing.
func (s *Service) mayLackMPAN(
	ctx context.Context,
	org flex.OrgID,
	in SiteInput,
) (bool, error) {
	if in.MPAN != "" {
		return false, nil
	}

	return read(ctx, s, org, func(tx *store.Tx) (bool, error) {
		o, err := tx.OrgRecord(ctx)
		return withoutMPAN(o), err
	})
}

// newSite is normalise for a site that is registered. It needs an MPAN or, where that may be
// missing, an address by which it is identified.
func (t SiteInput) newSite(withoutMPAN bool, loc ...string) (normal, []flex.Fault) {
	n, faults := t.normalise(withoutMPAN, loc...)
	if t.MPAN != "" {
		return n, faults
	}

	if !withoutMPAN {
		return n, append([]flex.Fault{faultAt(
			"value_error.any_str.min_length",
			"ensure this value has at least 1 characters",
			loc,
			"mpan",
		)}, faults...)
	}

	if len(faults) == 0 && n.key == "" {
		faults = append(faults, faultAt(
			"value_error.missing",
			"field required: a site without an MPAN is known by its address and postcode",
			loc,
			"street_address",
		))
	}

	return n, faults
}
