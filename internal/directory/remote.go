package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

// Remote is a company's own service that lists metering points. It is asked by POST with
// a JSON body, so that no number or postcode stands in a URL, at two addresses under URL:
//
//	search  {"postcode": "NW1 6XE"}     -> {"meters": [METER, …]}
//	lookup  {"mpan": "1200023305967"}   -> METER, or status 404
//
// where METER is an object with the columns of a file of meters as its members.
type Remote struct {
	Client *egress.Client
	URL    string
	Header map[string]string // for example an Authorization
}

type remoteMeter struct {
	MPAN         string `json:"mpan"`
	Direction    string `json:"direction"`
	Address      string `json:"address"`
	Postcode     string `json:"postcode"`
	UPRN         string `json:"uprn"`
	Energised    bool   `json:"energised"`
	HalfHourly   bool   `json:"half_hourly_settled"`
	Domestic     bool   `json:"domestic"`
	SupplierMPID string `json:"supplier_mpid"`
	SupplierName string `json:"supplier_name"`
	GSPGroup     string `json:"gsp_group"`
}

func (r remoteMeter) meter() (flex.Meter, error) {
	mpan, err := ParseMPAN(r.MPAN)
	if err != nil {
		return flex.Meter{}, fmt.Errorf(
			"the meter directory lists a wrong MPAN: %w",
			err,
		)
	}

	p, err := ParsePostcode(r.Postcode)
	if err != nil {
		return flex.Meter{}, fmt.Errorf(
			"the meter directory lists %v at a wrong postcode",
			mpan,
		)
	}

	if r.Direction != "import" && r.Direction != "export" {
		return flex.Meter{}, fmt.Errorf(
			"the meter directory lists %v with the direction %q",
			mpan,
			r.Direction,
		)
	}

	return flex.Meter{
		MPAN:         mpan.Core(),
		Import:       r.Direction == "import",
		Address:      r.Address,
		Postcode:     string(p),
		UPRN:         r.UPRN,
		Energised:    r.Energised,
		HalfHourly:   r.HalfHourly,
		Domestic:     r.Domestic,
		SupplierMPID: r.SupplierMPID,
		SupplierName: r.SupplierName,
		GSPGroup:     r.GSPGroup,
	}, nil
}

// ByPostcode asks for the points of a postcode.
func (r Remote) ByPostcode(
	ctx context.Context,
	p Postcode,
) ([]flex.Meter, error) {
	var answer struct{ Meters []remoteMeter }
	err := r.call(
		ctx,
		"search",
		map[string]string{"postcode": string(p)},
		&answer,
	)

	if err != nil {
		if flex.KindOf(err) == flex.NotFound {
			return nil, nil
		}

		return nil, err
	}

	var meters []flex.Meter
	var wrong error
	for _, m := range answer.Meters {
		meter, err := m.meter()
		if err != nil {
			wrong = err // one that nobody can use takes none of the others away
			continue
		}

		meters = append(meters, meter)
	}

	if len(meters) == 0 {
		return nil, wrong
	}

	return meters, nil
}

// ByMPAN asks for one point.
func (r Remote) ByMPAN(ctx context.Context, m MPAN) (flex.Meter, error) {
	var answer remoteMeter
	if err := r.call(
		ctx,
		"lookup",
		map[string]string{"mpan": m.Core()},
		&answer,
	); err != nil {
		return flex.Meter{}, err
	}

	meter, err := answer.meter()
	if err == nil && meter.MPAN != m.Core() {
		err = fmt.Errorf(
			"the meter directory answers with %v for %v",
			Mask(meter.MPAN),
			m,
		)
	}

	return meter, err
}

func (r Remote) call(
	ctx context.Context,
	question string,
	body map[string]string,
	to any,
) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}

	header := map[string]string{
		"Content-Type": "application/json",
		"Accept":       "application/json",
	}

	maps.Copy(header, r.Header)
	answer, err := r.Client.Do(
		ctx,
		egress.Request{
			Method:    "POST",
			URL:       strings.TrimSuffix(r.URL, "/") + "/" + question,
			Header:    header,
			Body:      b,
			AnswerMax: MaxAnswer,
			Time:      LookupTimeout,
		},
	)

	if err != nil {
		return fmt.Errorf("ask the meter directory: %w", err)
	}

	if answer.Status == 404 {
		return flex.Fail(
			flex.NotFound,
			"the meter directory knows no such metering point",
		)
	}

	if answer.Status != 200 {
		return fmt.Errorf("ask the meter directory: status %d", answer.Status)
	}

	if err := json.Unmarshal(answer.Body, to); err != nil {
		return fmt.Errorf("ask the meter directory: %w", err)
	}

	return nil
}
