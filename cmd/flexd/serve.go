package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"flexd/internal/app"
	"flexd/internal/egress"
	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/web"
)

// serve is `flexd serve`.
type serve struct {
	cellFlags
	Listen                string `help:"Address to answer on; ${default} if not given." default:"127.0.0.1:8080" env:"FLEXD_LISTEN" placeholder:"HOST:PORT"`
	AllowPrivateEndpoints reach  `help:"Let pushes go to private addresses: networks, addresses and host names with commas, as in --allow-private-endpoints=10.1.0.0/16,chargers.internal; without a list to all private and loopback ones. Addresses at which clouds keep credentials are refused in any case." env:"FLEXD_ALLOW_PRIVATE_ENDPOINTS" placeholder:"LIST"`
	BaseURL               string `help:"The interface's own address as clients reach it; dispatch events name it for their callback. The listening address if not given." env:"FLEXD_BASE_URL" placeholder:"URL"`

	TLSCert string `name:"tls-cert" help:"Answer over TLS with the certificate of this PEM file, its chain after it; read again when it changes. Needs --tls-key." env:"FLEXD_TLS_CERT" placeholder:"FILE"`
	TLSKey  string `name:"tls-key" help:"PEM file of the certificate's key." env:"FLEXD_TLS_KEY" placeholder:"FILE"`

	ClientCertificates      bool   `help:"Ask clients for a certificate when they connect over TLS, for credentials that are bound to one (flexd credential bind). They may show none. Needs --tls-cert or --acme-host." env:"FLEXD_CLIENT_CERTIFICATES"`
	ClientCertificateHeader string `help:"Field of a request in which a trusted proxy passes on a client's certificate: in base64 between colons (RFC 9440), or in escaped PEM (nginx). The proxy must set or remove it in every request. Needs --trusted-proxies." env:"FLEXD_CLIENT_CERTIFICATE_HEADER" placeholder:"NAME"`

	ACME acmeAuthority `embed:"" prefix:"acme-"`

	Migrate bool `help:"Bring an older schema of the database up to date first. With --no-migrate, refuse it." default:"true" negatable:"" env:"FLEXD_MIGRATE"`

	PriceSource []string `help:"Ask this service for prices; may be given more than once. Names as in flexd prices fetch. A sandbox without any has generated prices." env:"FLEXD_PRICE_SOURCE" placeholder:"NAME"`
	Carbon      bool     `help:"Ask for the carbon intensity beside the prices." env:"FLEXD_CARBON"`

	MeterURL    string            `help:"Look metering points up at this service instead of the imported list." env:"FLEXD_METER_URL" placeholder:"URL"`
	MeterHeader map[string]string `help:"Header field that is sent to the service of --meter-url, NAME=VALUE." env:"FLEXD_METER_HEADER" placeholder:"NAME=VALUE"`
	EcoesURL    string            `help:"Look metering points up in the industry's registry; needs a licence." env:"FLEXD_ECOES_URL" placeholder:"URL"`
	EcoesKey    string            `help:"The registry's key; better in the environment." env:"FLEXD_ECOES_KEY" placeholder:"KEY"`

	Bridge          string `help:"The --office-listen of a flexd ocpp, as in http://127.0.0.1:8889: the console then shows chargers as the bridge knows them, and calls them." env:"FLEXD_BRIDGE" placeholder:"URL"`
	BridgeTokenFile string `help:"File with its --office-token." type:"existingfile" env:"FLEXD_BRIDGE_TOKEN_FILE" placeholder:"FILE"`

	Mail mailRelay    `embed:"" prefix:"mail-"`
	SSO  singleSignOn `embed:"" prefix:"sso-"`

	OperatorsTwoStep         bool           `help:"Require a code of an authenticator app at every operator's login; operators without one set it up first." env:"FLEXD_OPERATORS_TWO_STEP"`
	OperatorsBySSOAlone      bool           `name:"operators-by-sso-alone" help:"Operators sign in only at the identity provider; logins by password end. If the provider fails, start without this flag: passwords are not deleted." env:"FLEXD_OPERATORS_BY_SSO_ALONE"`
	ResumeByTwo              bool           `help:"Require two operators to end every halt that is begun in the console: one asks, another ends it." env:"FLEXD_RESUME_BY_TWO"`
	TrustedProxies           []netip.Prefix `help:"Networks whose X-Forwarded-For is believed." env:"FLEXD_TRUSTED_PROXIES" placeholder:"CIDR"`
	MetricsFrom              []netip.Prefix `help:"Networks that may read /metrics; the loopback alone if not given." env:"FLEXD_METRICS_FROM" placeholder:"CIDR"`
	MaxConnections           int            `help:"Connections that are accepted at once; 8192 if not given, or what the limit of open files leaves." env:"FLEXD_MAX_CONNECTIONS" placeholder:"N"`
	MaxConnectionsPerAddress int            `help:"Connections that are accepted at once from one address that is no trusted proxy; a quarter of all if not given." env:"FLEXD_MAX_CONNECTIONS_PER_ADDRESS" placeholder:"N"`

	RateLimit int `help:"Requests a second that an organisation may make; ten seconds' worth may come at once; ${default} if not given." default:"20000" env:"FLEXD_RATE_LIMIT" placeholder:"N"`

	RampKW    int       `name:"ramp-kw" help:"How much the planned power of all cars together may change in a minute, in kW: a larger fleet's starts and ends are spread over up to half an hour, as far as each car's need leaves time; 0 for no limit, ${default} if not given." default:"50000" env:"FLEXD_RAMP_KW" placeholder:"KW"`
	RampGroup int       `name:"ramp-group-kw" help:"The same for the cars of each GSP group and of each constraint group; 0 for no limit, ${default} if not given." default:"10000" env:"FLEXD_RAMP_GROUP_KW" placeholder:"KW"`
	Observe   observe   `embed:""`
	Retention retention `embed:""`

	Clouds string `help:"JSON file of the manufacturers' clouds that users can link: a list of name, authorize_url, token_url, client_id, client_secret, scopes." type:"existingfile" env:"FLEXD_CLOUDS" placeholder:"FILE"`
}

// acmeAuthority issues certificates automatically (ACME) to a server that proves that a name
// leads to it.
type acmeAuthority struct {
	Host      []string `help:"Answer over TLS with a certificate for this name, requested and renewed at an authority by ACME (challenge tls-alpn-01: port 443 of the name must reach this flexd). May be given more than once. With this flag you accept the authority's terms." env:"FLEXD_ACME_HOST" placeholder:"NAME"`
	Mail      string   `help:"The e-mail address for the authority." env:"FLEXD_ACME_MAIL" placeholder:"ADDRESS"`
	Cache     string   `help:"Folder in which the certificates are stored; ${default} if not given. Processes for one name share it." default:"flexd-certificates" env:"FLEXD_ACME_CACHE" placeholder:"FOLDER"`
	Directory string   `help:"The authority's directory; Let's Encrypt's if not given." env:"FLEXD_ACME_DIRECTORY" placeholder:"URL"`
	Root      string   `help:"PEM file of the certificate that the authority's own is signed by, where the system does not trust it." env:"FLEXD_ACME_ROOT" placeholder:"FILE"`
}

// mailRelay has the server through which e-mails to users are sent, such as the code of the
// balance page.
type mailRelay struct {
	Relay    string `help:"Mail relay for e-mails to users and operators; without one none are sent. The connection uses TLS from the start at port 465, and STARTTLS at any other." env:"FLEXD_MAIL_RELAY" placeholder:"HOST:PORT"`
	From     string `help:"Sender of the e-mails." env:"FLEXD_MAIL_FROM" placeholder:"ADDRESS"`
	Username string `help:"Username at the mail relay." env:"FLEXD_MAIL_USERNAME" placeholder:"U"`
	Password string `help:"Password at the mail relay; better in the environment." env:"FLEXD_MAIL_PASSWORD" placeholder:"P"`
	Plain    bool   `help:"Send e-mails through a relay that offers no TLS." env:"FLEXD_MAIL_PLAIN"`
}

// mailer returns the sender of e-mails, or nil without a relay.
func (m mailRelay) mailer() (*egress.Mailer, error) {
	if m.Relay == "" {
		return nil, nil
	}
	if m.From == "" {
		return nil, errors.New("--mail-relay needs --mail-from, the sender of the e-mails")
	}

	if _, _, err := net.SplitHostPort(m.Relay); err != nil {
		return nil, flex.Fail(
			flex.Invalid,
			"--mail-relay: %q is not an address such as mail.example.com:587",
			m.Relay,
		)
	}

	if _, err := mail.ParseAddress(m.From); err != nil {
		return nil, flex.Fail(
			flex.Invalid,
			"--mail-from: %q is not an address such as flexd@example.com",
			m.From,
		)
	}

	return &egress.Mailer{
		Address:  m.Relay,
		From:     m.From,
		Username: m.Username,
		Password: flex.Secret(m.Password),
		Plain:    m.Plain,
	}, nil
}

// store is the flags of every command that works on a store.
type store struct {
	Database    string `help:"The database: sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME; ${default} if not given." default:"sqlite:flexd.db" env:"FLEXD_DATABASE" placeholder:"URL"`
	Environment string `help:"production or sandbox. Only the sandbox has a clock that can be advanced." enum:"production,sandbox" default:"production" env:"FLEXD_ENVIRONMENT"`
	KeyFile     string `help:"File of the keys that encrypt secrets in the database. If not given, on SQLite it is the name of the database followed by .key, and is created with a new database." env:"FLEXD_KEY_FILE" placeholder:"FILE"`
}

// settings returns the settings of a store that must exist. A command must not create a store
// by reading it: its answer, such as that pushes are halted, would be about the wrong store.
func (s store) settings() (app.Settings, error) {
	if err := s.check(); err != nil {
		return app.Settings{}, err
	}

	if path, embedded := s.path(); embedded {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return app.Settings{}, flex.Fail(
				flex.NotFound,
				"there is no database at %s: name one with --database, or make it with flexd org add",
				path,
			)
		}
	}

	settings, err := s.creating()
	settings.Schema = records.SchemaAsIs

	return settings, err
}

// creating returns the settings of a store that is created if it does not exist. No command
// changes the schema of an existing store, except flexd migrate and flexd serve.
func (s store) creating() (app.Settings, error) {
	if err := s.check(); err != nil {
		return app.Settings{}, err
	}

	keys, err := s.keys()

	return app.Settings{
		Database:    s.Database,
		Keys:        keys,
		Environment: flex.Environment(s.Environment),
		Schema:      records.SchemaCreate,
		Now:         clock,

		DatabaseClock: true,
	}, err
}

// check refuses a value that is not a database: another word, or a folder.
func (s store) check() error {
	if err := records.CheckURL(s.Database); err != nil {
		return err
	}

	path, embedded := s.path()
	if !embedded {
		return nil
	}

	if path == "" {
		return flex.Fail(
			flex.Invalid,
			"--database names no file: right is one like sqlite:flexd.db",
		)
	}

	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return flex.Fail(
			flex.Invalid,
			"--database: %s is a folder: name a file in it, as in sqlite:%s",
			path,
			filepath.Join(path, "flexd.db"),
		)
	}

	return nil
}

// path returns where an embedded database is.
func (s store) path() (path string, embedded bool) {
	path, embedded = strings.CutPrefix(s.Database, "sqlite:")
	return strings.TrimPrefix(path, "//"), embedded
}

// open opens flexd that the flags name, for a command that does one thing and ends.
func (s store) open(ctx context.Context) (*app.App, error) {
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}

	return openChecked(ctx, settings)
}

// openChecked opens flexd as it is, if the database is for the environment that is meant.
func openChecked(ctx context.Context, settings app.Settings) (*app.App, error) {
	h, err := app.Open(ctx, settings)
	if err != nil {
		return nil, err
	}

	if err := h.DB.CheckEnvironment(ctx); err != nil {
		h.Close()
		return nil, err
	}

	return h, nil
}

// openOrCreate is open, but creates a store that does not exist.
func (s store) openOrCreate(ctx context.Context) (*app.App, error) {
	settings, err := s.creating()
	if err != nil {
		return nil, err
	}

	return openChecked(ctx, settings)
}

// settings reads the server's settings from the flags and the files that they name.
func (s *serve) settings() (app.Settings, error) {
	settings, err := s.creating()
	if err != nil {
		return settings, err
	}

	if s.Migrate {
		settings.Schema = records.SchemaMigrate
	}

	if settings.Keys == nil {
		return settings, errors.New(
			"there is no key to seal secrets with: name the key file with --key-file; flexd key new FILE makes one",
		)
	}

	settings.PrivateEndpoints, settings.BaseURL = s.AllowPrivateEndpoints.Reach, s.BaseURL
	settings.PriceSources, settings.Carbon = s.PriceSource, s.Carbon
	settings.InventPrices = s.Environment == string(flex.Sandbox) &&
		len(s.PriceSource) == 0
	settings.Meters = app.MeterDirectory{
		URL:      s.MeterURL,
		Header:   s.MeterHeader,
		ECOESURL: s.EcoesURL,
		ECOESKey: flex.Secret(s.EcoesKey),
	}

	if err := s.limit(&settings); err != nil {
		return settings, err
	}

	if err := s.readFiles(&settings); err != nil {
		return settings, err
	}

	if err := s.singleSignOn(&settings); err != nil {
		return settings, err
	}

	for flag, address := range map[string]string{"--base-url": s.BaseURL, "--meter-url": s.MeterURL, "--ecoes-url": s.EcoesURL} {
		if err := checkURL(flag, address); err != nil {
			return settings, err
		}
	}

	return settings, nil
}

// checkURL refuses the value of a flag if it is not a web address.
func checkURL(flag, address string) error {
	if address == "" || isWebURL(address) {
		return nil
	}

	return flex.Fail(
		flex.Invalid,
		"%s: %q is not a URL such as https://flexd.example.com",
		flag,
		address,
	)
}

// readBridge reads where chargers are called, and the token for it.
func (s *serve) readBridge(settings *app.Settings) error {
	if s.Bridge == "" && s.BridgeTokenFile == "" {
		return nil
	}
	if !isWebURL(s.Bridge) || s.BridgeTokenFile == "" {
		return flex.Fail(
			flex.Invalid,
			"--bridge is a URL such as http://127.0.0.1:8889, and needs --bridge-token-file",
		)
	}

	token, err := os.ReadFile(s.BridgeTokenFile)
	settings.BridgeURL = s.Bridge
	settings.BridgeToken = flex.Secret(strings.TrimSpace(string(token)))
	if err == nil && settings.BridgeToken == "" {
		err = flex.Fail(flex.Invalid, "--bridge-token-file: %s is empty", s.BridgeTokenFile)
	}

	return err
}

// readFiles reads the certificate, the manufacturers' clouds and the way out for mail.
func (s *serve) readFiles(settings *app.Settings) error {
	if err := s.readBridge(settings); err != nil {
		return err
	}

	var err error
	settings.TLS, err = s.certificate()
	if err != nil {
		return err
	}
	if err := s.askClients(settings); err != nil {
		return err
	}

	settings.Clouds, err = readClouds(s.Clouds)
	if err != nil {
		return err
	}

	settings.Mail, err = s.Mail.mailer()

	return err
}

// Run serves until it is stopped.
func (s *serve) Run(ctx context.Context, c console) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}

	l, err := listenAt("--listen", s.Listen)
	if err != nil {
		return err
	}

	defer l.Close()

	scheme := "http://"
	if settings.TLS != nil {
		scheme = "https://"
	}

	if settings.BaseURL == "" {
		settings.BaseURL = scheme + l.Addr().String()
	}

	release, err := s.claim()
	if err != nil {
		return err
	}
	defer release()

	stop, err := s.Observe.begin(ctx, c)
	if err != nil {
		return err
	}

	defer stop()

	settings.StatedURL = s.BaseURL // as it was stated: the listening address may reach nobody
	served, err := s.openServed(ctx, settings)
	if err != nil {
		return err
	}

	defer served.Close()
	s.warn(c, l.Addr())
	fmt.Fprintf(c.out, "listening on %s%s\n", scheme, l.Addr())

	return served.Serve(ctx, l)
}

// certificate returns how to answer over TLS, or nil for plain HTTP.
func (s *serve) certificate() (*tls.Config, error) {
	if len(s.ACME.Host) > 0 {
		return s.certificateConfig()
	}

	if s.TLSCert == "" && s.TLSKey == "" {
		return nil, nil
	}

	if s.TLSCert == "" || s.TLSKey == "" {
		return nil, flex.Fail(
			flex.Invalid,
			"--tls-cert and --tls-key go together: name both files",
		)
	}

	config, err := web.TLS(s.TLSCert, s.TLSKey, nil)
	if err != nil {
		return nil, flex.Fail(flex.Invalid, "--tls-cert, --tls-key: %v", err)
	}

	return config, nil
}

// certificateConfig returns how to answer over TLS with certificates of an ACME authority.
func (s *serve) certificateConfig() (*tls.Config, error) {
	if s.TLSCert != "" || s.TLSKey != "" {
		return nil, flex.Fail(
			flex.Invalid,
			"--acme-host asks for a certificate, --tls-cert and --tls-key name one: give the one or the other",
		)
	}

	config, err := web.ACME{
		Hosts:     s.ACME.Host,
		Mail:      s.ACME.Mail,
		Cache:     s.ACME.Cache,
		Directory: s.ACME.Directory,
		Root:      s.ACME.Root,
	}.TLS()
	if err != nil {
		return nil, flex.Fail(flex.Invalid, "--acme-host: %v", err)
	}

	return config, nil
}

// warn reports settings that an operator may not have intended: plain HTTP on a network, or
// keys readable by everybody.
func (s *serve) warn(c console, at net.Addr) {
	a, ok := at.(*net.TCPAddr)
	plain := s.TLSCert == "" && len(s.ACME.Host) == 0
	if ok && !a.IP.IsLoopback() && plain {
		fmt.Fprintf(
			c.err,
			"warning: %s is plain HTTP, and others than this machine can reach it: passwords and tokens can be read on the way. Give --tls-cert and --tls-key, or --acme-host, or put a proxy in front that ends TLS.\n",
			at,
		)
	}

	file := s.KeyFile
	if path, embedded := s.path(); file == "" && embedded {
		file = path + ".key"
	}

	const others = 0o077
	if i, err := os.Stat(file); err == nil && i.Mode().Perm()&others != 0 {
		fmt.Fprintf(
			c.err,
			"warning: others than its owner can read or change the key file %s (mode %v): chmod 600 it.\n",
			file,
			i.Mode().Perm(),
		)
	}
}

// rampMost is a thousand gigawatts a minute: no limit.
const rampMost = 1_000_000_000

// rateMost is a million requests a second: no limit.
const rateMost = 1_000_000

// limit sets which proxies the transports trust, and their limits.
func (s *serve) limit(to *app.Settings) error {
	if s.MaxConnections < 0 || s.MaxConnectionsPerAddress < 0 {
		return flex.Fail(
			flex.Invalid,
			"--max-connections and --max-connections-per-address are 1 or more",
		)
	}

	if s.RateLimit < 1 || s.RateLimit > rateMost {
		return flex.Fail(
			flex.Invalid,
			"--rate-limit is from 1 to %d, not %d",
			rateMost,
			s.RateLimit,
		)
	}

	for name, kw := range map[string]int{"--ramp-kw": s.RampKW, "--ramp-group-kw": s.RampGroup} {
		if kw < 0 || kw > rampMost {
			return flex.Fail(
				flex.Invalid,
				"%s is from 0 to %d, not %d",
				name,
				rampMost,
				kw,
			)
		}
	}

	retention, err := s.Retention.read()
	if err != nil {
		return err
	}

	to.Retention = retention
	to.Ramp = flex.Ramp{
		All:   flex.FromKW(float64(s.RampKW)),
		Group: flex.FromKW(float64(s.RampGroup)),
	}
	to.TrustedProxies = s.TrustedProxies
	to.TwoStep = s.OperatorsTwoStep
	to.ResumeByTwo = s.ResumeByTwo
	to.MetricsFrom = s.MetricsFrom
	to.RateLimit = s.RateLimit
	to.SlowAfter = s.Observe.SlowStatement
	to.Limits = web.Limits{
		Connections: s.MaxConnections,
		PerAddress:  s.MaxConnectionsPerAddress,
	}

	return nil
}

func listenAt(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf(
			"another program listens at %s: stop it, or name another address with %s (%w)",
			address,
			flag,
			err,
		)
	}

	if wrong, ok := errors.AsType[*net.AddrError](err); ok {
		return nil, flex.Fail(
			flex.Invalid,
			"%s: %q is not an address such as 127.0.0.1:8080: %s",
			flag,
			address,
			wrong.Err,
		)
	}

	return l, err
}

// openFor opens flexd and finds an organisation in it by name.
func openFor(
	ctx context.Context,
	s store,
	name string,
) (*app.App, flex.Org, error) {
	settings, err := s.settings()
	if err != nil {
		return nil, flex.Org{}, err
	}

	return openSettings(ctx, settings, name)
}

func openSettings(
	ctx context.Context,
	s app.Settings,
	name string,
) (*app.App, flex.Org, error) {
	h, err := openChecked(ctx, s)
	if err != nil {
		return nil, flex.Org{}, err
	}

	var org flex.Org
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, err = orgNamed(ctx, all, name)
		return err
	})
	if err != nil {
		h.Close()
		return nil, org, err
	}

	return h, org, nil
}

// isWebURL reports whether a text is a whole URL of the web.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}

	return u.Scheme == "http" || u.Scheme == "https"
}
