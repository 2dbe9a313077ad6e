package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// freshDatabase returns the URL of a database with the newest schema and with its key file
// beside it, as the sandbox creates them.
func freshDatabase(t *testing.T) string {
	t.Helper()

	database := storetest.SQLite(t)
	key := strings.TrimPrefix(database, "sqlite:") + ".key"

	var said bytes.Buffer
	words := []string{"key", "new", key}
	if code := run(t.Context(), words, console{in: strings.NewReader(""), out: &said, err: &said}); code != exitDone {
		t.Fatalf("flexd key new: %d %s", code, said.String())
	}

	return database
}

// commandLineOf returns a function that runs a command line on the database, and returns its
// exit code and everything that it printed.
func commandLineOf(t *testing.T, database string) func(line string) (int, string) {
	t.Setenv("FLEXD_DATABASE", database)
	return func(line string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		code := run(
			t.Context(),
			strings.Fields(line),
			console{in: strings.NewReader(""), out: &out, err: &out},
		)
		return code, out.String()
	}
}

// A command on a store that does not exist says so and creates none. An operator who halts
// pushes from the wrong folder must not get the answer that no pushes are sent.
func TestRun_NoStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flexd.db")
	run := commandLineOf(t, "sqlite:"+file)
	id := flex.SiteID{1}.String()
	for _, line := range []string{
		"halt why", "resume", "verify", "doctor", "backup " + file + ".copy", "org list", "org set Acme", "operator list", "operator remove ann",
		"operator password ann", "endpoint list Acme", "endpoint set Acme --url https://example.com/", "dispatch list Acme", "caps show",
		"caps set --kw 1", "payouts list", "settle runs", "replay Acme " + id, "export " + id, "erase --yes " + id, "key reseal", "key persons",
	} {
		if code, said := run(line); code != exitFailed || !strings.Contains(said, "there is no database at "+file) {
			t.Errorf("flexd %s: %d %s", line, code, said)
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("flexd %s made a store", line)
		}
	}

	if code, said := run("org add Acme --username me"); code != exitDone {
		t.Errorf("org add: %d %s", code, said)
	}
	if code, said := run("halt why"); code != exitDone || !strings.Contains(said, "No push leaves") {
		t.Errorf("halt: %d %s", code, said)
	}
	if code, said := run("doctor"); code != exitFailed || !strings.Contains(said, "halted by command line") || !strings.Contains(said, ": why") {
		t.Errorf("doctor while halted: %d %s", code, said)
	}

	for _, step := range []struct {
		line string
		code int
		says string
	}{
		{"resume", exitDone, "Pushes leave again"}, {"halt --list", exitDone, "Nothing is halted."},
		{"halt --org Acme --preview", exitDone, "0 assets at 0 sites"}, {"halt --list", exitDone, "Nothing is halted."},
		{"halt --org Acme --model x why", exitUsage, "give one of"}, {"halt --endpoint schedule why", exitUsage, "--endpoint with --org"},
		{"halt --gsp-group C why", exitUsage, "_A to _P"}, {"halt --gsp-group _C", exitUsage, "say why"},
		{"halt --org Acme new", exitDone, "until flexd resume with the same flags"}, {"halt --gsp-group _C storm", exitDone, "Nothing is sent"},
		{"halt --list", exitDone, "GSP group _C, by command line"}, {"halt --list --json", exitDone, `"name": "Acme"`},
		{"doctor", exitFailed, "Pushes of GSP group _C are halted"}, {"doctor", exitFailed, "Pushes of Acme are halted"}, {"resume", exitFailed, "name it, as flexd halt --list"},
		{"resume --org Acme", exitDone, "Pushes leave again"}, {"resume --gsp-group _C", exitDone, "Pushes leave again"},
		{"resume --gsp-group _C", exitFailed, "are not halted"}, {"halt --list", exitDone, "Nothing is halted."},
	} {
		if code, said := run(step.line); code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("flexd %s: %d %s", step.line, code, said)
		}
	}
}

// Wrong use ends with 2, a failure with 1, and each says what was wrong and what is right.
func TestRun_Wrong(t *testing.T) {
	database := freshDatabase(t)
	run := commandLineOf(t, database)
	for _, line := range []string{"org add Acme --username me", "operator add ann"} {
		if code, said := run(line); code != exitDone {
			t.Fatalf("flexd %s: %d %s", line, code, said)
		}
	}

	for line, want := range map[string]struct {
		code int
		said string
	}{
		"org add":                                                         {exitUsage, "(try flexd org add --help)"},
		"org set Acme user_share":                                         {exitUsage, "user_share=default sets the default again"},
		"org set Acme user_share=7":                                       {exitUsage, "not a number from 0 to 1"},
		"org set Acme two_factor=x":                                       {exitUsage, "not true or false"},
		"org set Acme no_such=1":                                          {exitUsage, `flexd org set "Acme" prints them all`},
		"credential roll me --again --grace 1h":                           {exitUsage, "can't be used together"},
		"org add Acme --username other":                                   {exitFailed, "flexd credential roll gives a username a new password"},
		"payouts export main.go --org Acme":                               {exitFailed, "may be a file of payments that was sent"},
		"org set Nobody":                                                  {exitFailed, "flexd org list prints them"},
		"org list":                                                        {exitDone, "Acme  "},
		"operator list":                                                   {exitDone, "ann   "},
		"endpoint set Acme --url ftp://x":                                 {exitUsage, "flexd: url: it must begin with https://"},
		"settle again --from x --to x":                                    {exitUsage, "--from: \"x\" is not a day of the form 2026-04-14"},
		"settle again --from=2026-01-02 --to=2026-01-01":                  {exitUsage, "--to 2026-01-01 is before --from 2026-01-02"},
		"payouts list --status paid":                                      {exitUsage, "none of [pending_approval approved"},
		"org add A\xff --username other":                                  {exitUsage, `"A\xff" is not text in UTF-8`},
		"asset replan \xff":                                               {exitUsage, `"\xff" is not text in UTF-8`},
		"halt rea\xffson":                                                 {exitUsage, `"rea\xffson" is not text in UTF-8`},
		"org add Beta --username=b\xff":                                   {exitUsage, `"b\xff" is not text in UTF-8`},
		"verify --database sqlite:.":                                      {exitUsage, "--database: . is a folder: name a file in it, as in sqlite:flexd.db"},
		"serve --database sqlite:.":                                       {exitUsage, "--database: . is a folder: name a file in it"},
		"doctor --database sqlite:":                                       {exitUsage, "--database names no file"},
		"caps set --kw=1e300":                                             {exitUsage, "--kw is 1e+300 kW: it should be 0 to 1000000"},
		"caps set --kw=1000000.1":                                         {exitUsage, "it should be 0 to 1000000"},
		"caps show":                                                       {exitFailed, "flexd caps set sets them"},
		"export " + flex.SiteID{1}.String():                               {exitFailed, "nothing is held on a site"},
		"erase " + flex.SiteID{1}.String():                                {exitFailed, "nothing is held on a site"},
		"serve --base-url x":                                              {exitUsage, "--base-url: \"x\" is not a URL such as https://"},
		"serve --meter-url x":                                             {exitUsage, "--meter-url: \"x\" is not a URL such as https://"},
		"serve --ecoes-url ftp://x":                                       {exitUsage, "--ecoes-url: \"ftp://x\" is not a URL such as https://"},
		"serve --rate-limit 0":                                            {exitUsage, "--rate-limit is from 1 to 1000000, not 0"},
		"serve --rate-limit -5":                                           {exitUsage, "--rate-limit is from 1 to 1000000, not -5"},
		"serve --rate-limit 1000001":                                      {exitUsage, "--rate-limit is from 1 to 1000000, not 1000001"},
		"serve --mail-relay x --mail-from=a@example.com":                  {exitUsage, "--mail-relay: \"x\" is not an address such as mail.example.com:587"},
		"serve --mail-relay x:25 --mail-from=me":                          {exitUsage, "--mail-from: \"me\" is not an address such as flexd@example.com"},
		"serve --bridge=http://x --bridge-token-file=/dev/null":           {exitUsage, "--bridge-token-file: /dev/null is empty"},
		"ocpp --username=a --password=b --no-password --flexd=x":          {exitUsage, "--flexd: \"x\" is not a URL"},
		"ocpp --username=a --password=b --no-password --delay=-5m":        {exitUsage, "--delay is 0s or more, not -5m0s"},
		"ocpp --username=a --password=b --no-password --endpoint-url=x":   {exitUsage, "--endpoint-url: \"x\" is not a URL"},
		"serve --listen x":                                                {exitUsage, "--listen: \"x\" is not an address such as 127.0.0.1:8080"},
		"serve --acme-host flexd":                                         {exitUsage, "--acme-host: \"flexd\" is no name for a certificate"},
		"serve --acme-host a.example.com --tls-cert=x":                    {exitUsage, "give the one or the other"},
		"verify --database x":                                             {exitUsage, "a database is sqlite:PATH or postgres://"},
		"verify --database x:secret":                                      {exitUsage, `not "x:…"`},
		"ocpp --username=a --password=b --no-password --listen=x":         {exitUsage, "--listen: \"x\" is not an address"},
		"ocpp --username=a --password=b":                                  {exitUsage, "flexd charger-password CP1 >> FILE makes a line"},
		"ocpp --username=a --password=b --no-password --tls-cert=main.go": {exitUsage, "go together"},
		"charger-password CP1 --password short":                           {exitUsage, "at least 16 characters"},
		"charger-password CP1":                                            {exitDone, "CP1 sha256:"},
	} {
		if code, said := run(line); code != want.code || !strings.Contains(said, want.said) {
			t.Errorf(
				"flexd %s: %d %s, want %d %s",
				line,
				code,
				said,
				want.code,
				want.said,
			)
		}
	}
}

// A second process may not serve a SQLite database while the first does: it would send the
// same pushes. Once the first has ended, it may.
func TestServeAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flexd.db")
	release, err := lockDatabase(file)
	if err != nil {
		t.Fatal(err)
	}
	run := commandLineOf(t, "sqlite:"+file)
	if code, said := run("serve --listen 127.0.0.1:0"); code != exitFailed || !strings.Contains(said, "another flexd serves "+file) {
		t.Errorf("a second flexd: %d %s", code, said)
	}

	if err := release(); err != nil {
		t.Fatal(err)
	}
	if again, err := lockDatabase(file); err != nil {
		t.Errorf("once the first has ended: %v", err)
	} else if err := again(); err != nil {
		t.Error(err)
	}
}

// Without --yes, erase says what is stored and does not change it. What acts on secrets is in
// the audit log.
func TestErase_Foretells(t *testing.T) {
	run, _, seed := openSeeded(t)
	site := seed.Site()
	seed.Asset(site, flex.Charger, 0)

	for range 2 {
		if code, said := run("erase " + site.String()); code != exitUsage || !strings.Contains(said, "\nasset ") || !strings.Contains(said, "nothing was erased: with --yes") {
			t.Errorf("without --yes: %d %s", code, said)
		}

		code, said := run("erase --json " + site.String())
		if code != exitUsage || !strings.Contains(said, `"asset": 1`) || strings.Contains(said, "HELD ON SITE") {
			t.Errorf("as JSON: %d %s", code, said)
		}
	}
	if code, said := run("erase --yes " + site.String()); code != exitDone {
		t.Errorf("with --yes: %d %s", code, said)
	}

	if code, said := run("erase --yes " + flex.SiteID{1}.String()); code != exitFailed || !strings.Contains(said, "nothing is held on a site") {
		t.Errorf("a site that never was: %d %s", code, said)
	}
	if code, said := run("erase " + site.String()); code != exitFailed {
		t.Errorf("once more: %d %s", code, said)
	}
}

// TestRun_Stopped: a command that is stopped before it is done fails, except for those that
// run until they are stopped.
func TestRun_Stopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "copy.db")
	commandLineOf(t, freshDatabase(t))

	stopped, stop := context.WithCancel(t.Context())
	stop()

	for _, line := range []string{"verify", "doctor", "org list", "backup " + file} {
		var said bytes.Buffer
		code := run(
			stopped,
			strings.Fields(line),
			console{in: strings.NewReader(""), out: &said, err: &said},
		)
		if code != exitFailed {
			t.Errorf("flexd %s: %d %s", line, code, said.String())
		}
	}

	if _, err := os.Stat(file); err == nil {
		t.Error("there is a copy")
	}

	cut := fmt.Errorf("ask: %w", context.Canceled)
	if err := outcomeOf("serve", cut); err != nil {
		t.Error(err)
	}
	if err := outcomeOf("backup <file>", cut); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A program that waits for its input, which the context does not interrupt, is ended by a
// second signal at the latest.
func TestMain_Signals(t *testing.T) {
	answers, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Close()
	defer out.Close()

	program := exec.CommandContext(t.Context(), os.Args[0], "plan")
	program.Env, program.Stdout = append(os.Environ(), asProgram+"=1"), out
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = program.Process.Kill() // it has ended, unless the test failed
		if err := program.Wait(); err == nil {
			t.Error("it ended as if it had planned all")
		}
	})
	out.Close() // now its end alone is open

	// It answers a line, so it is ready for signals, and waits for the next.
	if _, err := io.WriteString(in, "{}\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("%q %v", line, err)
	}

	// Signals that arrive while one is pending are merged with it, so they are sent until the
	// program has ended.
	const most, pause = 3 * time.Minute, 10 * time.Millisecond
	for end := time.Now().Add(most); time.Now().Before(end); {
		if err := program.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := answers.SetReadDeadline(time.Now().Add(pause)); err != nil {
			t.Fatal(err)
		}

		_, err := lines.ReadByte()
		if errors.Is(err, io.EOF) {
			return
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	t.Error("it goes on after many signals")
}
