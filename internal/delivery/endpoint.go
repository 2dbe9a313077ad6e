package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// The limits of an endpoint, and the defaults of its settings.
const (
	RateDefault        = 1000 // pushes a second
	RateMax            = 100_000
	ConcurrencyDefault = 64 // attempts under way at once
	ConcurrencyMax     = 512
	HeadersMax         = 20
	HeaderValueMax     = 4 << 10 // bytes
	RotationTime       = 24 * time.Hour
)

// Settings are an organisation's settings of an endpoint. A field that is zero leaves the
// endpoint's value, or the default.
type Settings struct {
	URL     string
	Headers []flex.EndpointHeader // nil leaves the existing ones
	Secret  flex.Secret           // made if there is none
	// a schedule is sent as the profile alone
	Bare bool
	// members of a profile without a value are sent as null
	Nulls bool
	// a dispatch is sent as one message for all its assets
	Batch bool
	// how schedules with discharging are sent; nil leaves the existing form
	Discharge   *flex.DischargeForm
	Enabled     *bool // nil means true
	Rate        int
	Concurrency int
}

// SetEndpoint creates or changes the organisation's endpoint. It returns the endpoint, and
// whether a secret was made for it. A changed secret is valid beside the earlier one, as with
// Rotate. Pushes that wait for a retry are due at once, and those that the endpoint refused
// before are offered again.
func (s *Service) SetEndpoint(
	ctx context.Context,
	org flex.OrgID,
	name flex.EndpointName,
	settings Settings,
) (e flex.Endpoint, made bool, err error) {
	if err := s.check(settings); err != nil {
		return e, false, err
	}

	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		before, err := lockBefore(ctx, tx, name)
		if err != nil {
			return err
		}

		e = settings.appliedTo(before, name)
		if settings.Secret != "" && settings.Secret != before.Secret {
			replaceSecret(&e, settings.Secret, s.DB.Now())
		}

		made = e.Secret == ""
		if made {
			e.Secret, err = makeSecret(tx)
			if err != nil {
				return err
			}
		}

		if e.Discharge != before.Discharge { // cars may discharge now, or may not any more
			// A planner locks a session before its push, and so does this.
			if err := tx.MarkAllDischarging(ctx); err != nil {
				return err
			}
		}

		e, err = s.put(ctx, tx, e)

		return err
	})

	return e, made, err
}

// lockBefore locks an endpoint that is to be set, and returns it, empty if there is none. If
// two requests create it at once, the second one gets the first's endpoint, whose secret was
// returned already.
func lockBefore(
	ctx context.Context,
	tx *store.Tx,
	name flex.EndpointName,
) (flex.Endpoint, error) {
	before, err := tx.LockEndpoint(ctx, name)
	if flex.KindOf(err) != flex.NotFound {
		return before, err
	}

	if err := tx.LockOrg(ctx); err != nil {
		return before, err
	}

	before, err = tx.LockEndpoint(ctx, name)
	if flex.KindOf(err) == flex.NotFound {
		return flex.Endpoint{}, nil
	}

	return before, err
}

// appliedTo returns the endpoint with the settings applied. The secret is unchanged.
func (s *Settings) appliedTo(
	before flex.Endpoint,
	name flex.EndpointName,
) flex.Endpoint {
	e := before
	e.Name, e.URL = name, s.URL
	e.Bare, e.Nulls = s.Bare, s.Nulls
	e.Batch = s.Batch
	if s.Discharge != nil {
		e.Discharge = *s.Discharge
	}

	if s.Headers != nil {
		e.Headers = s.Headers
	}

	e.Enabled, e.Reason = true, ""
	if s.Enabled != nil && !*s.Enabled {
		e.Enabled, e.Reason = false, "the organisation has switched it off"
	}

	e.Rate = cmp.Or(s.Rate, before.Rate, RateDefault)
	e.Concurrency = cmp.Or(
		s.Concurrency,
		before.Concurrency,
		ConcurrencyDefault,
	)

	return e
}

// Rotate gives the endpoint a new secret and returns it. Until RotationTime has passed, pushes
// have two signatures, by the new secret and by the previous one. If the secret is rotated
// again meanwhile, there is one signature more for each that is still valid.
func (s *Service) Rotate(
	ctx context.Context,
	org flex.OrgID,
	name flex.EndpointName,
) (flex.Endpoint, error) {
	var e flex.Endpoint
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		e, err = tx.LockEndpoint(ctx, name)
		if err != nil {
			return err
		}

		secret, err := makeSecret(tx)
		if err != nil {
			return err
		}

		replaceSecret(&e, secret, s.DB.Now())
		e, err = s.put(ctx, tx, e)
		return err
	})

	return e, err
}

// put stores an endpoint. Pushes that waited for it are offered at once, or by turns if the
// ramp asks for that.
func (s *Service) put(
	ctx context.Context,
	tx *store.Tx,
	e flex.Endpoint,
) (flex.Endpoint, error) {
	e, err := tx.PutEndpoint(ctx, e)
	if err == nil && e.Enabled {
		_, err = tx.SpreadLate(ctx, e.Name, s.Ramp)
	}

	return e, err
}

func replaceSecret(e *flex.Endpoint, secret flex.Secret, now time.Time) {
	if e.Secret != "" {
		e.Former = formerSecretsInUse(e, now)
		e.OldSecret, e.OldUntil = e.Secret, now.Add(RotationTime)
	}
	e.Secret = secret
}

// formerMax is how many earlier secrets sign besides the latest ones.
const formerMax = 8

// formerSecretsInUse returns the endpoint's earlier secrets that are still valid, the newest
// first. The receiver may know only the oldest, if the responses with the later ones were
// lost.
func formerSecretsInUse(e *flex.Endpoint, now time.Time) []flex.FormerSecret {
	var former []flex.FormerSecret
	if now.Before(e.OldUntil) {
		former = append(former, flex.FormerSecret{
			Secret: e.OldSecret,
			Until:  e.OldUntil,
		})
	}

	for _, f := range e.Former {
		if now.Before(f.Until) && len(former) < formerMax {
			former = append(former, f)
		}
	}

	return former
}

func makeSecret(tx *store.Tx) (flex.Secret, error) {
	key, err := tx.RandomBytes(egress.SecretMade)
	return egress.NewSecret(key), err
}

// Endpoint returns the organisation's endpoint of that name.
func (s *Service) Endpoint(
	ctx context.Context,
	org flex.OrgID,
	name flex.EndpointName,
) (flex.Endpoint, error) {
	var e flex.Endpoint
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		e, err = tx.Endpoint(ctx, name)
		return err
	})

	return e, err
}

// Endpoints returns the organisation's endpoints.
func (s *Service) Endpoints(
	ctx context.Context,
	org flex.OrgID,
) ([]flex.Endpoint, error) {
	var es []flex.Endpoint
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		es, err = tx.Endpoints(ctx)
		return err
	})

	return es, err
}

// DeleteEndpoint deletes the organisation's endpoint. Pushes that are due wait for another
// endpoint.
func (s *Service) DeleteEndpoint(
	ctx context.Context,
	org flex.OrgID,
	name flex.EndpointName,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return tx.DeleteEndpoint(ctx, name)
	})
}

// check lists every fault of the settings at once.
func (s *Service) check(settings Settings) error {
	var faults []flex.Fault
	fault := func(msg string, loc ...string) {
		faults = append(faults, flex.Fault{
			Loc:  append([]string{"body"}, loc...),
			Msg:  msg,
			Type: "value_error",
		})
	}

	if err := s.checkURL(settings.URL); err != nil {
		fault(err.Error(), "url")
	}

	if len(settings.Headers) > HeadersMax {
		fault(
			fmt.Sprintf(
				"%d header fields are more than %d",
				len(settings.Headers),
				HeadersMax,
			),
			"headers",
		)
	}

	for i, h := range settings.Headers {
		if err := checkHeader(h); err != nil {
			fault(err.Error(), "headers", fmt.Sprint(i))
		}
	}

	if settings.Secret != "" {
		if _, err := egress.SecretKey(settings.Secret); err != nil {
			fault(err.Error(), "secret")
		}
	}

	if settings.Rate < 0 || settings.Rate > RateMax {
		fault(fmt.Sprintf("a rate is 1 to %d pushes a second", RateMax), "rate")
	}

	if settings.Concurrency < 0 || settings.Concurrency > ConcurrencyMax {
		fault(
			fmt.Sprintf(
				"1 to %d attempts may be under way at once",
				ConcurrencyMax,
			),
			"concurrency",
		)
	}

	if len(faults) > 0 {
		return &flex.Error{Kind: flex.Invalid, Faults: faults}
	}

	return nil
}

var (
	placeholder  = regexp.MustCompile(`\{[^{}]*\}|[{}]`)
	placeholders = []string{"{asset_id}", "{external_id}", "{site_id}"}
)

func (s *Service) checkURL(text string) error {
	if len(text) > egress.URLMax/2 { // the values of placeholders are longer
		return fmt.Errorf(
			"the URL has %d bytes, more than %d",
			len(text),
			egress.URLMax/2,
		)
	}

	for _, p := range placeholder.FindAllString(text, -1) {
		if !slices.Contains(placeholders, p) {
			return fmt.Errorf(
				"%s is no placeholder: there are %s",
				p,
				strings.Join(placeholders, ", "),
			)
		}
	}

	u, err := url.Parse(placeholder.ReplaceAllString(text, "x"))
	if err != nil {
		return errors.New(
			"it is not a URL; right is one like https://example.com/chargers/{external_id}/profile",
		)
	}

	_, host, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host = host[:end]
	}

	port, portErr := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	switch {
	case u.Scheme == "http" && !s.PlainHTTP:
		return errors.New(
			"it must begin with https://; http:// is for private networks, where the operator allows it (--allow-private-endpoints)",
		)

	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it must begin with https://")

	case u.Hostname() == "":
		return errors.New(
			"it names no host; right is one like https://example.com/chargers/{external_id}/profile",
		)

	case u.User != nil:
		return errors.New(
			"it holds a user name or password; put credentials into a header field such as Authorization",
		)

	case u.Fragment != "":
		return errors.New("the part from # on would never be sent")

	case strings.ContainsAny(host, "{}"):
		return errors.New("placeholders belong into the path or the query, not into the host")

	case portErr != nil || port == 0:
		return errors.New("its port is none: they go from 1 to 65535")
	}

	if err := egress.CheckPort(u.Port()); err != nil {
		return err
	}

	return s.checkHost(u.Hostname())
}

// checkHost refuses a host that is not on the public internet, with the setting by which an
// operator can permit it.
func (s *Service) checkHost(host string) error {
	err := s.Out.CheckHost(host)
	if err == nil || errors.Is(err, egress.ErrNever) {
		return err
	}

	return fmt.Errorf(
		"%w; an operator may allow it (--allow-private-endpoints)",
		err,
	)
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

// ownHeaders are the fields that the connection or the scheme sets.
var ownHeaders = []string{
	"host",
	"connection",
	"content-length",
	"content-type",
	"content-encoding",
	"transfer-encoding",
	"te",
	"trailer",
	"upgrade",
	"expect",
	"keep-alive",
	"accept-encoding",
	"x-idempotency-key",
	"idempotency-key",
}

func checkHeader(h flex.EndpointHeader) error {
	name := strings.ToLower(h.Name)
	value := h.Value.Reveal()

	switch {
	case !headerName.MatchString(h.Name):
		return fmt.Errorf("%.100q is not the name of a header field", h.Name)

	case slices.Contains(ownHeaders, name), strings.HasPrefix(name, "webhook-"), strings.HasPrefix(name, "flexd-"), strings.HasPrefix(name, "proxy-"):
		return fmt.Errorf("%s is set by flexd itself", h.Name)

	case len(value) > HeaderValueMax:
		return fmt.Errorf(
			"the value of %s has %d bytes, more than %d",
			h.Name,
			len(value),
			HeaderValueMax,
		)

	case strings.ContainsFunc(value, func(r rune) bool {
		return r < ' ' && r != '\t' || r == 0x7f || r > 0x7e
	}):
		return fmt.Errorf(
			"the value of %s holds a character that a header field cannot",
			h.Name,
		)
	}

	return nil
}
