package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

// MaxAnswer is the longest answer that is read, in bytes: some thousand meters.
const MaxAnswer = 4 << 20

// ECOES is the industry's registry of metering points, for those who have a licence and a
// key. It answers in lists of keys and values, which are read by name, and reports its
// errors with status 200.
type ECOES struct {
	Client *egress.Client
	URL    string      // of the service, as the licence names it
	Key    flex.Secret // goes into the body of each request
}

// MaxPairs is the number of details that one search asks ECOES for, to tell the import
// from the export point where a premises is listed twice.
const MaxPairs = 40

type ecoesPair struct{ Key, Value string }

type ecoesError struct{ Code, Message string }

type ecoesResult struct {
	Errors                []ecoesError
	UtilityAddressMatches []struct {
		UtilityType    string
		AddressDetails []ecoesPair
	}
	UtilityMatches []struct {
		UtilityType    string
		UtilityDetails []ecoesPair
	}
}

// notFound are the codes that say there is nothing, which is no failure.
const notFound = "1004"

// call asks one question and returns its result, flex.NotFound if ECOES finds nothing.
func (e ECOES) call(
	ctx context.Context,
	method string,
	parameters ...ecoesPair,
) (ecoesResult, error) {
	body, err := json.Marshal(map[string]any{
		"Authentication": map[string]string{"Key": e.Key.Reveal()},
		"ParameterSets":  []any{map[string]any{"Parameters": parameters}},
	})

	if err != nil {
		return ecoesResult{}, err
	}

	answer, err := e.Client.Do(
		ctx,
		egress.Request{
			Method: "POST",
			URL:    strings.TrimSuffix(e.URL, "/") + "/" + method,
			Header: map[string]string{
				"Content-Type": "application/json",
				"Accept":       "application/json",
			},
			Body:      body,
			AnswerMax: MaxAnswer,
			Time:      LookupTimeout,
		},
	)

	if err != nil {
		return ecoesResult{}, fmt.Errorf("ask ECOES %s: %w", method, err)
	}

	if answer.Status != 200 {
		return ecoesResult{}, fmt.Errorf(
			"ask ECOES %s: status %d",
			method,
			answer.Status,
		)
	}

	var a struct{ Results []ecoesResult }
	if err := json.Unmarshal(answer.Body, &a); err != nil {
		return ecoesResult{}, fmt.Errorf("ask ECOES %s: %w", method, err)
	}

	if len(a.Results) != 1 {
		return ecoesResult{}, fmt.Errorf(
			"ask ECOES %s: %d results to one question",
			method,
			len(a.Results),
		)
	}

	return a.Results[0], a.Results[0].fault(method)
}

// fault is the first of the errors in a result.
func (r *ecoesResult) fault(method string) error {
	if len(r.Errors) == 0 {
		return nil
	}

	first := r.Errors[0]
	if first.Code == notFound {
		return flex.Fail(flex.NotFound, "ECOES knows no such metering point")
	}

	return fmt.Errorf(
		"ask ECOES %s: error %s: %s",
		method,
		first.Code,
		first.Message,
	)
}

// ByPostcode lists the electricity points of a postcode. The list has no directions, so
// where a premises is on it twice the details of both are asked for; all others are taken
// for import points.
func (e ECOES) ByPostcode(
	ctx context.Context,
	p Postcode,
) ([]flex.Meter, error) {
	result, err := e.call(
		ctx,
		"SearchUtilityAddress",
		ecoesPair{"Postcode", string(p)},
		ecoesPair{"ReturnDataForSingleResult", "false"},
		ecoesPair{"Permission", "false"},
	)

	if flex.KindOf(err) == flex.NotFound {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	var meters []flex.Meter
	listed := map[string]int{}

	for _, match := range result.UtilityAddressMatches {
		if !electricity(match.UtilityType) {
			continue
		}

		f := fieldsOf(match.AddressDetails)
		m := flex.Meter{
			MPAN:      f["mpan_core"],
			Address:   f.address(),
			Postcode:  f["postcode"],
			Import:    true,
			Energised: true,
		}

		meters = append(meters, m)
		listed[NewAddress(m.Address, p).Key()]++
	}

	return e.withDetails(ctx, p, meters, listed)
}

// withDetails asks for the details of points whose address is listed more than once. A point without details is left out:
// nobody can use it, and the others are there all the same.
func (e ECOES) withDetails(
	ctx context.Context,
	p Postcode,
	meters []flex.Meter,
	listed map[string]int,
) ([]flex.Meter, error) {
	asked := 0
	known := make([]flex.Meter, 0, len(meters))

	for _, m := range meters {
		number, err := ParseMPAN(m.MPAN)
		if err != nil || listed[NewAddress(m.Address, p).Key()] < 2 ||
			asked == MaxPairs {
			known = append(known, m)
			continue
		}

		asked++

		full, err := e.ByMPAN(ctx, number)
		if flex.KindOf(err) == flex.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}

		known = append(known, full)
	}

	return known, nil
}

// ByMPAN returns the technical details of one point.
func (e ECOES) ByMPAN(ctx context.Context, m MPAN) (flex.Meter, error) {
	result, err := e.call(
		ctx,
		"GetTechnicalDetailsByMpan",
		ecoesPair{"MPAN", m.Core()},
		ecoesPair{"Permission", "true"},
	)
	if err != nil {
		return flex.Meter{}, err
	}

	for _, match := range result.UtilityMatches {
		f := fieldsOf(match.UtilityDetails)
		if electricity(match.UtilityType) && f["mpan_core"] == m.Core() {
			return f.meter(), nil
		}
	}

	return flex.Meter{}, flex.Fail(
		flex.NotFound,
		"ECOES knows no such metering point",
	)
}

func electricity(utility string) bool {
	return utility == "" || strings.EqualFold(utility, "electricity")
}

// fields are a list of keys and values by the keys in small letters. Of a key that comes
// twice the first value that says something counts.
type fields map[string]string

func fieldsOf(pairs []ecoesPair) fields {
	f := fields{}
	for _, p := range pairs {
		key := strings.ToLower(strings.TrimSpace(p.Key))
		if f[key] == "" {
			f[key] = strings.TrimSpace(p.Value)
		}
	}

	return f
}

// address joins the nine lines of an address.
func (f fields) address() string {
	var lines []string
	for i := 1; i <= 9; i++ {
		if line := f[fmt.Sprintf("address_line_%d", i)]; line != "" {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, ", ")
}

// yes reads a flag, which comes written in several ways, and whether it says anything.
func (f fields) yes(key string) (yes, said bool) {
	switch strings.ToUpper(f[key]) {
	case "T", "Y", "1", "TRUE", "YES":
		return true, true
	case "F", "N", "0", "FALSE", "NO":
		return false, true
	}

	return false, false
}

// meter reads the details of a point.
func (f fields) meter() flex.Meter {
	m := flex.Meter{
		MPAN:     f["mpan_core"],
		Address:  f.address(),
		Postcode: f["postcode"],
		UPRN:     f["uprn"],
		GSPGroup: f["gsp_group_id"],
	}

	if p, err := ParsePostcode(m.Postcode); err == nil {
		m.Postcode = string(p)
	}

	// Profile class 08 was that of export before the registry gave the direction.
	m.Import = !strings.HasPrefix(strings.ToUpper(f["energy_direction"]), "E")

	if f["energy_direction"] == "" {
		m.Import = f["profile_class"] != "08"
	}

	traded := f["trading_status"] == "" ||
		strings.EqualFold(f["trading_status"], "T")
	m.Energised = strings.EqualFold(f["energisation_status"], "E") && traded
	m.HalfHourly = f.halfHourly()
	m.Domestic = f.domestic()
	m.SupplierMPID = f["css_supplier_mpid"]
	if m.SupplierMPID == "" {
		m.SupplierMPID = f["supplier_mpid"]
	}

	return m
}

// halfHourly reports whether the point is settled half-hourly: by its measurement class,
// or because it has been moved to half-hourly settlement for all.
func (f fields) halfHourly() bool {
	if migrated, _ := f.yes("mhhs_indicator"); migrated {
		return true
	}

	switch f["measurement_class"] {
	case "C", "E", "F", "G":
		return true
	}

	return false
}

// domestic reports whether the point serves a home, by what the registry says first.
func (f fields) domestic() bool {
	for _, key := range []string{
		"domestic_premises_indicator",
		"domestic_consumer_indicator",
	} {
		if yes, said := f.yes(key); said {
			return yes
		}
	}

	switch f["measurement_class"] {
	case "F":
		return true
	case "C", "E", "G":
		return false
	}

	switch f["profile_class"] {
	case "", "00", "01", "02":
		return true
	}

	return false
}
