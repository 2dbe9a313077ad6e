// Command flexd is the energy-flexibility service and its tools in one program. This package
// reads the command line and the environment, and connects the other packages, which do the
// work.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	// the authorities to trust if the system has no list, as in a container image built from
	// scratch
	_ "golang.org/x/crypto/x509roots/fallback"

	"flexd/internal/flex"
)

// clock is the time by which the program goes. Tests have it run ahead.
var clock = time.Now

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands is the whole command line. Every flag is also an environment variable FLEXD_….
type commands struct {
	Log      string `help:"Write logs as text or json." enum:"text,json" default:"text" env:"FLEXD_LOG"`
	LogLevel string `help:"Write logs from this level on: debug, info, warn or error." enum:"debug,info,warn,error" default:"info" env:"FLEXD_LOG_LEVEL"`

	Version kong.VersionFlag `help:"Print the version, and exit."`

	Demo       demo              `cmd:"" group:"start" help:"Simulate an evening and a night in eight homes. Start here."`
	Completion completion        `cmd:"" group:"start" help:"Print a shell's completion script for commands and flags; in ~/.bashrc: source <(flexd completion bash)"`
	Serve      serve             `cmd:"" group:"start" help:"Run the service: interface, planning, pushes, settlement and console."`
	Org        org               `cmd:"" group:"people" help:"Organisations and their credentials."`
	Cell       cellCommand       `cmd:"" group:"store" help:"Cells, the databases of a flexd that has several: list which organisation is in which, and move organisations."`
	Credential credentialCommand `cmd:"" group:"people" help:"Credentials of organisations: list, add, roll, limit, bind, revoke."`
	Operator   operator          `cmd:"" group:"people" help:"People who may use the console."`
	Audit      auditCommand      `cmd:"" group:"people" help:"The audit log: list and export people's actions, and verify that none was changed."`
	Halt       halt              `cmd:"" group:"fleet" help:"Stop all pushes on every process, or a part of them, within a second."`
	Resume     resume            `cmd:"" group:"fleet" help:"End a halt: its pushes are sent again."`

	Alerts   alerts          `cmd:"" group:"watch" help:"Alerts: their rules, routes and state."`
	Asset    assetCommand    `cmd:"" group:"fleet" help:"Act on one asset or several: plan again, send again, release, charge now or no more, change ready-by, exclude, include, offboard."`
	Endpoint endpoint        `cmd:"" group:"fleet" help:"Where an organisation's pushes go."`
	Dispatch dispatch        `cmd:"" group:"fleet" help:"Dispatch events of batteries."`
	Caps     caps            `cmd:"" group:"fleet" help:"Caps of the fleet: power, starts per minute, a traded position."`
	Fleet    fleetCommand    `cmd:"" group:"fleet" help:"What the fleet can draw now and tomorrow."`
	Instruct instructCommand `cmd:"" group:"fleet" help:"Have a part of the fleet draw less or more for a time: preview, send, stop, report."`
	Offer    offerCommand    `cmd:"" group:"fleet" help:"Offers of less or more consumption in a window: what can be offered, make, list, accept."`
	Product  productCommand  `cmd:"" group:"fleet" help:"Products of DFS and of distribution operators: import, invite, answers, what they earned."`
	Limits   limitsCommand   `cmd:"" group:"fleet" help:"Limits of feeders that a distribution operator sets for a time, and the fallback while the operator is silent."`
	OpenADR  openADR         `cmd:"" group:"fleet" name:"openadr" help:"The OpenADR server of an organisation: its clients, and what subscribers were notified of."`
	Unready  unreadyCommand  `cmd:"" group:"watch" help:"The cars that had less than was asked for by a time on a day: what was planned, what they had, and why."`
	Evidence evidenceCommand `cmd:"" group:"watch" help:"Report from the records how a fleet was controlled: energy, changes of power, needs, halts, offers, access; as JSON or a page to print."`
	MCP      mcpServer       `cmd:"" group:"fleet" name:"mcp" help:"Let an agent read, explain and preview by the Model Context Protocol, on standard input and output or over HTTP."`
	Rate     rateCommand     `cmd:"" group:"fleet" help:"The measured power of an asset: show, fix, reset."`
	Verify   verify          `cmd:"" group:"watch" help:"Check every record against the rules that it must meet."`
	Doctor   doctor          `cmd:"" group:"watch" help:"Find problems, and say how to solve them."`
	Replay   replay          `cmd:"" group:"fleet" help:"Send a delivery once more."`
	Find     findCommand     `cmd:"" group:"people" help:"Find sites and assets by an id, an MPAN, an e-mail address, a postcode or part of an external id. Example: flexd find ann@example.com"`
	Export   export          `cmd:"" group:"people" help:"Print all records of a site as JSON, or a whole organisation as a file for another flexd."`
	Import   importCommand   `cmd:"" group:"people" help:"Import a whole organisation from the file that another flexd exported."`
	Erase    erase           `cmd:"" group:"people" help:"Offboard a site and erase its records, except those of money."`
	Migrate  migrate         `cmd:"" group:"store" help:"Upgrade the database to the schema that this flexd needs."`
	Backup   backup          `cmd:"" group:"store" help:"Copy the SQLite database to a file while it is in use."`

	Key keyCommand `cmd:"" group:"store" help:"The keys that encrypt secrets in the database."`

	Prices prices      `cmd:"" group:"import" help:"Market prices: import them, fetch them, choose sources."`
	Meters meters      `cmd:"" group:"import" help:"The list of metering points: import it."`
	BSC    bsc         `cmd:"" group:"money" name:"bsc" help:"A party's month of settlement: metering points, volumes, and reports that are compared."`
	MPAN   mpanCommand `cmd:"" group:"import" name:"mpan" help:"Which organisation a metering point is with."`
	Models models      `cmd:"" group:"import" help:"The catalogue of asset models: import it."`

	OCPP            ocppCommand     `cmd:"" group:"chargers" name:"ocpp" help:"Connect OCPP chargers (1.6J, 2.0.1 and 2.1) to a flexd, for those who have chargers and no platform."`
	MQTT            mqttCommand     `cmd:"" group:"chargers" name:"mqtt" help:"Show sites to Home Assistant by MQTT."`
	ChargerCall     chargerCall     `cmd:"" group:"chargers" name:"charger-call" help:"Call a charger through a running flexd ocpp and print its answer. Example: flexd charger-call CP1 Reset '{\"type\":\"Soft\"}' --token T"`
	ChargerPassword chargerPassword `cmd:"" group:"chargers" name:"charger-password" help:"Print a charger's line for the file of flexd ocpp --chargers."`

	Supply supplyCommand `cmd:"" group:"import" help:"What a site's connection can carry, and its assets' rated powers: show them, and set them from a day on."`

	Readings readings `cmd:"" group:"money" help:"Readings that are held back: list them, release them or discard them."`

	Statement statement `cmd:"" group:"money" help:"What a site's user earned and withdrew, and how each penny was calculated. Example: flexd statement SITE --tax-year 2026 --format csv --out statement.csv"`

	Payouts payouts       `cmd:"" group:"money" help:"Users' withdrawals: approve them, and exchange files with the bank."`
	Books   booksCommand  `cmd:"" group:"money" help:"An organisation's books: months, trial balance, journal."`
	Settle  settleCommand `cmd:"" group:"money" help:"Settlement runs: list, repeat and compare them."`

	Listen  listen  `cmd:"" group:"build" help:"Show an organisation's pushes on a machine that flexd cannot reach, and forward them."`
	Trigger trigger `cmd:"" group:"build" help:"Send one event, as a client would."`
	Certify certify `cmd:"" group:"build" help:"Grade a client's endpoint: answers, duplicates, signatures."`

	Plan     planCommand     `cmd:"" group:"measure" help:"Plan problems, a line of JSON each, from standard input to standard output."`
	Bench    benchCommand    `cmd:"" group:"measure" help:"Measure flexd on this machine."`
	Backtest backtestCommand `cmd:"" group:"measure" help:"Calculate from past readings what a home battery, or all devices of a home, would have saved, at imported prices or with a tariff."`
	Simulate simulateCommand `cmd:"" group:"measure" help:"Simulate days of homes, generated from a seed, on a separate flexd, and check its rules."`
}

// byteOrderMark is written by some editors at the beginning of a file.
const byteOrderMark = "\uFEFF"

// readUnmarked reads a file without its byte order mark, if it has one.
func readUnmarked(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	return bytes.TrimPrefix(text, []byte(byteOrderMark)), err
}

// console has a command's input and outputs.
type console struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// json prints a value as one JSON document.
func (c console) json(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func main() {
	ctx, stop := signal.NotifyContext(
		context.Background(),
		os.Interrupt,
		syscall.SIGTERM,
	)

	defer stop()

	// A second signal ends the program at once: a command may be waiting for its input, which
	// the context does not interrupt.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr}))
}

// commandOf is the command that a line which cannot be read was meant for.
func commandOf(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context.Command() == "" {
		return "flexd"
	}

	command, _, _ := strings.Cut(
		wrong.Context.Command(),
		" <",
	) // without its arguments

	return "flexd " + command
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, c console) (code int) {
	var cmds commands
	exited := errors.New("exited")
	defer func() {
		p := recover()
		if p != nil && p != exited { //nolint:errorlint // kong's Exit unwinds with it
			panic(p)
		}
	}()

	parser, err := newParser(ctx, &cmds, c, func(n int) {
		code = n
		panic(exited)
	})
	if err != nil {
		fmt.Fprintln(c.err, "flexd:", err)
		return exitFailed
	}

	parsed, err := parser.Parse(joinNegatives(args))
	if err != nil {
		fmt.Fprintf(
			c.err,
			"flexd: %v (try %s --help)\n",
			err,
			commandOf(err),
		)
		return exitUsage
	}

	slog.SetDefault(slog.New(cmds.handler(c.err)))

	if doneStatuses[parsed.Command()] {
		warnOfUnread(parser.Model, os.Environ())
	}

	err = outcomeOf(parsed.Command(), parsed.Run())
	if err != nil {
		fmt.Fprintln(c.err, "flexd:", err)
	}

	return exitCode(err)
}

// exitCode returns the exit code for a command's outcome. Input that cannot be used counts as
// wrong usage, whichever layer refuses it.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}

	switch flex.KindOf(err) {
	case flex.Invalid, flex.Malformed:
		return exitUsage
	default:
		return exitFailed
	}
}

// doneStatuses are the commands that run until they are stopped: for them that is success.
var doneStatuses = map[string]bool{
	"demo":   true,
	"listen": true,
	"mcp":    true,
	"mqtt":   true,
	"ocpp":   true,
	"serve":  true,
}

// outcomeOf returns the outcome of a command. A command that was stopped early has failed: a
// script must not take its copy, check or import for complete.
func outcomeOf(command string, err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}

	if doneStatuses[command] {
		return nil
	}

	return fmt.Errorf("it was stopped before it was done: %w", err)
}

// newParser returns the parser of the command line. It calls exit after it has printed the
// help or the version.
func newParser(
	ctx context.Context,
	cmds *commands,
	c console,
	exit func(int),
) (*kong.Kong, error) {
	return kong.New(cmds,
		kong.Name("flexd"),
		kong.Description(
			"Energy flexibility: registers chargers and batteries, plans their schedules against prices, pushes them, settles what was delivered.\n\nStart with: flexd demo",
		),
		kong.UsageOnError(),
		kong.ExplicitGroups(groups),
		readers(),
		kong.Help(helpWithExample(c.out)),
		kong.Vars{"version": version()},
		kong.Writers(c.out, c.err),
		kong.Exit(exit),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(c),
	)
}

// version describes this build of flexd: the commit, and how it was built.
func version() string {
	code := "of unknown origin"
	if built, ok := debug.ReadBuildInfo(); ok && built.Main.Version != "" {
		code = built.Main.Version
	}

	return fmt.Sprintf(
		"flexd %s, %s %s/%s",
		code,
		runtime.Version(),
		runtime.GOOS,
		runtime.GOARCH,
	)
}

func (c commands) handler(w io.Writer) slog.Handler {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // kong admits only the four levels
	}

	o := &slog.HandlerOptions{Level: level}
	if c.Log == "json" {
		return slog.NewJSONHandler(w, o)
	}

	return slog.NewTextHandler(w, o)
}
